#include "report/results/row_fields.hpp"

#include <fmt/format.h>

#include "core/error.hpp"
#include "core/text.hpp"

namespace stepcast {

void RowFields::refuse(const char* column, std::string_view expected) const {
  const Cell& cell = row_.at(column);
  const bool missing = std::holds_alternative<std::monostate>(cell);
  throw InputError(fmt::format("{}:{}:1: {}: expected {}, got {}", file_, line_, column, expected,
                               missing ? "nothing" : '"' + printable(to_text(cell)) + '"'));
}

std::optional<double> RowFields::maybe_number(const char* column) const {
  if (std::holds_alternative<std::monostate>(row_.at(column))) return std::nullopt;
  return number(column);
}

double RowFields::number(const char* column) const {
  if (const auto value = row_.number(column)) return *value;
  refuse(column, "a number");
}

double RowFields::positive(const char* column) const {
  const double value = number(column);
  if (!(value > 0)) refuse(column, "a number above 0");
  return value;
}

std::int64_t RowFields::integer(const char* column) const {
  if (const auto* value = std::get_if<std::int64_t>(&row_.at(column))) return *value;
  refuse(column, "an integer");
}

std::int64_t RowFields::integer(const char* column, std::int64_t otherwise) const {
  return std::holds_alternative<std::monostate>(row_.at(column)) ? otherwise : integer(column);
}

std::string RowFields::text(const char* column) const {
  if (const auto* value = std::get_if<std::string>(&row_.at(column))) return *value;
  refuse(column, "text");
}

std::string RowFields::text(const char* column, const char* otherwise) const {
  return std::holds_alternative<std::monostate>(row_.at(column)) ? otherwise : text(column);
}

bool RowFields::flag(const char* column) const {
  const Cell& cell = row_.at(column);
  if (std::holds_alternative<std::monostate>(cell)) return false;
  if (const auto* value = std::get_if<bool>(&cell)) return *value;
  refuse(column, "true or false");
}

}  // namespace stepcast
