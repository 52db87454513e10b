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

}  // namespace stepcast
