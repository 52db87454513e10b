#pragma once

#include <string>
#include <vector>

namespace stepcast {

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
