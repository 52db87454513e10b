#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "core/typed_numbers.hpp"

namespace stepcast {

/// `text` as a JSON string with quotes; bytes that are not valid UTF-8 become U+FFFD.
std::string json_text(std::string_view text);

/// The number of code points, which is the width on a terminal for Latin text.
std::size_t display_width(std::string_view text);

/// `text` with control characters replaced by "?", so that it can neither move the cursor nor end a line.
std::string without_controls(std::string_view text);

/// `text` with every byte that is not valid UTF-8 replaced by U+FFFD.
std::string valid_utf8(std::string_view text);

/// `text` cut to at most `width` code points, of which the last three are "..." if something is cut; 0: not
/// cut.
std::string shortened(std::string_view text, std::size_t width);

/// `text` cut in the middle to at most `width` code points, because the ends of names often differ; 0: not
/// cut.
std::string shortened_middle(std::string_view text, std::size_t width);

/// The texts. If one has more than `width` code points, "..." stands for the words that all of them begin or
/// end with, so that what differs is left.
std::vector<std::string> told_apart(std::vector<std::string> texts, std::size_t width);

/// Text with three significant digits and an SI prefix: human(12345, "B/s") is "12.3 kB/s", human(12345, "")
/// is "12.3 k". Values below 1 get no prefix, except times. A number that is not finite is "-".
std::string human(double value, std::string_view unit);

/// Text such as "1.23 us", "45.6 ms", "7.89 s", "12.3 min", "4.56 h" or "7.89 d".
std::string human(Seconds time);

/// Text with a binary prefix, such as "15.9 GiB".
std::string human(Bytes bytes);

/// Plain decimal text with `decimals` digits after the point; never "-0".
std::string fixed(double value, int decimals);

enum class Align { left, right };

struct TableColumn {
  std::string header;     ///< words; wrapped to several lines if the cells are narrower
  std::string unit = "";  ///< on its own header line below the words; may be empty
  Align align = Align::right;
  int widest = 0;  ///< longer cells are cut in the middle [characters]; 0: no limit
};

/// A table of text cells.
struct Table {
  std::vector<TableColumn> columns;
  std::vector<std::vector<std::string>> rows;
};

/// The table as text: aligned columns two spaces apart, a rule below the header, no trailing spaces, a
/// newline at the end of every line. Widths count code points, not bytes; control characters are shown as
/// "?".
std::string to_string(const Table& table);

/// The table in lines of at most `width` characters, where possible: the cells of a last column of text are
/// wrapped, and other tables become several, each with the first column. Width 0: no limit.
std::string to_string(const Table& table, int width);

/// Columns of the terminal that standard output is; 0 if it is none.
int terminal_width();

}  // namespace stepcast
