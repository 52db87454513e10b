#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace stepcast {

/// One value of a result row: nothing, text, a number or yes/no. SI base units; the unit is in the column's
/// name.
using Cell = std::variant<std::monostate, std::string, double, std::int64_t, bool>;

/// One point of a sweep: (column, value) in the order in which the columns were set.
struct Row {
  std::vector<std::pair<std::string, Cell>> cells = {};

  void set(std::string_view column, Cell value);                ///< replaces an earlier value
  const Cell& at(std::string_view column) const;                ///< nothing when the row lacks the column
  std::optional<double> number(std::string_view column) const;  ///< a number or a count, else nothing
  std::string text(std::string_view column) const;              ///< as results.csv shows it, unquoted
};

/// The row with `column` in front; a value that it has there already gives way.
Row with_first(std::string_view column, Cell value, const Row& row);

/// The rows of one or several scenarios. A row without a `scenario` cell belongs to `scenario`.
struct Results {
  std::string scenario = {};
  std::vector<Row> rows = {};
};

/// All columns in order of first appearance over the rows; `scenario` is always the first.
std::vector<std::string> columns(const Results& results);

/// Value of `column`, with `scenario` filled in from the results where the row does not name its own.
Cell at(const Results& results, const Row& row, std::string_view column);

/// The shortest decimal text that reads back to the same bits; "" for a number that is not finite.
std::string shortest(double value);

/// Text as results.csv shows it, unquoted: "" for nothing, `true` and `false`, shortest decimal numbers.
std::string to_text(const Cell& cell);

}  // namespace stepcast
