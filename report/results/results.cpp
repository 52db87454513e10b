#include "report/results/results.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <set>

namespace stepcast {
namespace {

constexpr std::string_view kScenario = "scenario";

}  // namespace

void Row::set(std::string_view column, Cell value) {
  for (auto& [name, cell] : cells) {
    if (name == column) {
      cell = std::move(value);
      return;
    }
  }
  cells.emplace_back(std::string(column), std::move(value));
}

Row with_first(std::string_view column, Cell value, const Row& row) {
  Row longer;
  longer.set(column, std::move(value));
  for (const auto& [name, cell] : row.cells) {
    if (name != column) longer.cells.emplace_back(name, cell);
  }
  return longer;
}

const Cell& Row::at(std::string_view column) const {
  static const Cell nothing;
  for (const auto& [name, cell] : cells) {
    if (name == column) return cell;
  }
  return nothing;
}

std::optional<double> Row::number(std::string_view column) const {
  const Cell& cell = at(column);
  if (const auto* real = std::get_if<double>(&cell)) return *real;
  if (const auto* count = std::get_if<std::int64_t>(&cell)) return static_cast<double>(*count);
  return std::nullopt;
}

std::string Row::text(std::string_view column) const {
  return to_text(at(column));
}

std::vector<std::string> columns(const Results& results) {
  std::vector<std::string> names{std::string(kScenario)};
  std::set<std::string, std::less<>> seen{names.front()};
  for (const Row& row : results.rows) {
    for (const auto& [name, cell] : row.cells) {
      if (seen.insert(name).second) names.push_back(name);
    }
  }
  return names;
}

Cell at(const Results& results, const Row& row, std::string_view column) {
  const Cell& cell = row.at(column);
  const bool missing = std::holds_alternative<std::monostate>(cell);
  return missing && column == kScenario ? Cell(results.scenario) : cell;
}

std::string shortest(double value) {
  if (!std::isfinite(value)) return "";
  std::array<char, 32> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
  return std::string(digits.data(), end);
}

std::string to_text(const Cell& cell) {
  struct Visitor {
    std::string operator()(std::monostate) const { return ""; }
    std::string operator()(const std::string& text) const { return text; }
    std::string operator()(double value) const { return shortest(value); }
    std::string operator()(std::int64_t value) const { return std::to_string(value); }
    std::string operator()(bool value) const { return value ? "true" : "false"; }
  };
  return std::visit(Visitor{}, cell);
}

}  // namespace stepcast
