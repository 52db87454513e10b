#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace stepcast {

/// One value of a result row: nothing, text, a number, an integer or a boolean. Numbers are in SI base units;
/// the column's name tells the unit.
using Cell = std::variant<std::monostate, std::string, double, std::int64_t, bool>;

/// The results of one point of a sweep: (column, value) in the order in which the columns were set.
struct Row {
  std::vector<std::pair<std::string, Cell>> cells = {};

  void set(std::string_view column, Cell value);  ///< Replaces an earlier value.
  const Cell& at(std::string_view column) const;  ///< An empty cell if the row has no such column.
  std::optional<double> number(
      std::string_view column) const;               ///< Missing if the cell is no number or integer.
  std::string text(std::string_view column) const;  ///< As in results.csv, unquoted.
};

/// The columns whose cells are numbers or integers.
std::vector<std::string> number_columns(const Row& row);

/// The row with `column` in front; the value replaces one that the row already has.
Row with_first(std::string_view column, Cell value, const Row& row);

/// The rows of one or several scenarios. A row without a `scenario` cell belongs to `scenario`.
struct Results {
  std::string scenario = {};
  std::vector<Row> rows = {};
};

/// All columns in the order of their first appearance in the rows; `scenario` is always the first.
std::vector<std::string> columns(const Results& results);

/// The value of `column`. For `scenario` it is the results' scenario if the row has no such cell.
Cell at(const Results& results, const Row& row, std::string_view column);

/// The shortest decimal text that reads back to the same bits; "" for a number that is not finite.
std::string shortest(double value);

/// Text as results.csv shows it, unquoted: "" for nothing, `true` and `false`, shortest decimal numbers.
std::string to_text(const Cell& cell);

/// The columns that distinguish rows of equal `workers`, such as the algorithm. Each combination of their
/// values is one line of a plot. Keys of the sweep come first, then other columns of text or booleans, until
/// no two rows agree in all of them and in `workers`. Columns that only depend on `workers` are left out,
/// except keys of the model: different models are always different lines. Rows that would have no name get
/// the first key that has one value in all of them.
std::vector<std::string> series_columns(const Results& results, const std::vector<std::string>& sweep);

/// The name of a row's series, made of its values in these columns. Words stand alone; numbers (with or
/// without a unit) and booleans follow the last word of their column (`bucket=25 MiB`). Empty cells are left
/// out.
std::string series_name(const Results& results, const Row& row, const std::vector<std::string>& columns);

/// The content of results.csv: a header line and a line per row, quoted as in RFC 4180, with LF line ends.
/// Numbers are the shortest decimal text that reads back to the same bits. Text that would read back as a
/// number, as a boolean or as an empty field is quoted, so that types are preserved. A number that is not
/// finite is an empty field.
std::string to_csv(const Results& results);

/// Reads a CSV file; CRLF line ends are accepted too. An unquoted field is an integer, a number, true or
/// false, or else text. Empty fields are left out of their row.
/// @throws InputError `FILE:LINE:1: expected WHAT, got WHAT`
Results read_csv(std::string_view text, const std::string& file_name);

/// One row as a JSON object without a newline: keys in the row's order, numbers as the shortest decimal text
/// that reads back to the same bits (a whole number of type double keeps its point: `8.0`). Empty cells and
/// numbers that are not finite are null.
std::string to_json_line(const Results& results, const Row& row);

/// The content of results.jsonl: a line per row, with the same cells as results.csv and exact types.
std::string to_json_lines(const Results& results);

/// Adds the rows to a table of the command's JSON object (core/cli/command_line.hpp).
void add_json_rows(const std::string& table, const Results& results);

/// The treatment of a last line that an interruption left incomplete.
enum class TornLine { refuse, drop };

/// Reads a file of JSON lines. Nulls are left out of their row.
/// @throws InputError `FILE:LINE:1: expected a JSON object of text, numbers and true or false`
Results read_json_lines(std::string_view text, const std::string& file_name,
                        TornLine torn = TornLine::refuse);

}  // namespace stepcast
