#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stepcast {

/// Place of a byte that no text file may have, and the reason.
struct BadByte {
  std::size_t offset;
  std::string reason;
};

/// Bytes in the UTF-8 sequence that starts at `text[at]`, or 0 if it is not valid (Unicode 15, table 3-7).
std::size_t utf8_length(std::string_view text, std::size_t at);

/// Finds the first byte that is not part of valid UTF-8 text, or is a control character other than tab and
/// line ends. Empty if there is none.
std::optional<BadByte> first_bad_byte(std::string_view text);

/// Shortens the text to one printable line of at most 60 bytes, for error messages. Control characters and
/// line ends become spaces.
std::string printable(std::string_view text);

/// The word that a user probably meant by `text`, for "did you mean": one that begins with `text`, else one
/// that contains it, if `text` has three letters at least; else one that differs in at most a third of the
/// letters, or in two. Among several, the word at the least edit distance (inserted, deleted or changed
/// letters). Capital and small letters count as equal, PyTorch's Linear counts as `dense`, and so do names of
/// add_other_name. Empty if there is none.
std::string nearest_word(std::string_view text, const std::vector<std::string>& words);

/// From now on nearest_word takes `name`, in small letters, for `word`, unless it has a word already.
void add_other_name(const std::string& name, const std::string& word);

/// Advice with the nearest word, such as `; did you mean "ring"?`. Empty if there is none.
std::string word_advice(std::string_view text, const std::vector<std::string>& words);

/// The parts of a text between spaces, tabs and other blanks.
std::vector<std::string> split_words(std::string_view text);

/// Parses a plain decimal number such as `-12`, `3.5` or `1e-6`. Leading zeros, a plus sign, hexadecimal
/// numbers, inf and nan are refused: the result is empty.
std::optional<double> parse_number(std::string_view text);
/// Parses a plain decimal integer by the same rules.
std::optional<std::int64_t> parse_integer(std::string_view text);

/// Physical dimension of a quantity with a unit.
enum class Dimension { time, bytes, flops, bytes_per_second, flops_per_second };

/// Parses a number and a unit of `dimension`, such as "25 GB/s", into SI base units. Empty for any other
/// text.
std::optional<double> parse_quantity(std::string_view text, Dimension dimension);

/// The number of units `to` in one unit `from`, such as 1000 for "s" and "ms"; empty if they measure
/// different things.
std::optional<double> unit_ratio(std::string_view from, std::string_view to);

/// Advice for a text that is nearly a quantity, such as `; did you mean "25 MiB"?` for "25MiB", or with two
/// readings for "10 gb/s". Empty for any other text, and for a quantity.
std::string quantity_advice(std::string_view text, Dimension dimension);

/// An example of a quantity for error messages, such as "25 GB/s".
std::string_view example(Dimension dimension);

/// Range of values that is accepted. No network, cluster or training comes near its ends; beyond them, sums
/// of bytes and of times lose their meaning in double precision.
struct ValueRange {
  double low, high;  ///< in SI units
  std::string_view text;
};
ValueRange valid_range(Dimension dimension);

/// The date in UTC, such as "2026-11-21".
std::string today();
/// The date and the time in UTC, such as "2026-11-21T09:30:00Z".
std::string date_and_time();

}  // namespace stepcast
