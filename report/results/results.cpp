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

std::vector<std::string> number_columns(const Row& row) {
  std::vector<std::string> columns;
  for (const auto& [column, cell] : row.cells) {
    if (row.number(column)) columns.push_back(column);
  }
  return columns;
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

namespace {

/// Text columns that describe a result, not an input.
const std::set<std::string, std::less<>>& result_text_columns() {
  static const std::set<std::string, std::less<>> names{"point",        "bottleneck", "fidelity", "folding",
                                                        "link_sharing", "trace_kind", "fits"};
  return names;
}

using GroupKey = std::vector<std::string>;

GroupKey key_of(const Results& results, const Row& row, const std::vector<std::string>& columns) {
  GroupKey key{row.text("workers")};
  for (const auto& column : columns) key.push_back(to_text(at(results, row, column)));
  return key;
}

/// The number of groups into which `columns` and `workers` divide the rows.
std::size_t groups(const Results& results, const std::vector<std::string>& columns) {
  std::set<GroupKey> keys;
  for (const Row& row : results.rows) keys.insert(key_of(results, row, columns));
  return keys.size();
}

bool varies(const Results& results, const std::string& column) {
  std::set<std::string> values;
  for (const Row& row : results.rows) values.insert(to_text(at(results, row, column)));
  return values.size() > 1;
}

bool is_categorical(const Results& results, const std::string& column) {
  return std::any_of(results.rows.begin(), results.rows.end(), [&](const Row& row) {
    const Cell cell = at(results, row, column);
    return std::holds_alternative<std::string>(cell) || std::holds_alternative<bool>(cell);
  });
}

/// Names the rows that have no value in these columns after a key that has one value in all of them, such as
/// `host_swap`.
void name_remaining_rows(const Results& results, const std::vector<std::string>& sweep,
                         std::vector<std::string>& chosen) {
  std::vector<const Row*> nameless;
  for (const Row& row : results.rows) {
    if (series_name(results, row, chosen).empty()) nameless.push_back(&row);
  }
  if (chosen.empty() || nameless.empty()) return;
  for (const std::string& key : sweep) {
    const Cell first = at(results, *nameless.front(), key);
    const auto same = [&](const Row* row) { return at(results, *row, key) == first; };
    if (key == "workers" || to_text(first).empty() || !varies(results, key)) continue;
    if (!std::all_of(nameless.begin(), nameless.end(), same)) continue;
    chosen.push_back(key);
    return;
  }
}

/// The last word of a key: "bucket" for "strategy.bucket".
std::string last_word(const std::string& key) {
  return key.substr(key.rfind('.') + 1);
}

}  // namespace

std::vector<std::string> series_columns(const Results& results, const std::vector<std::string>& sweep) {
  auto candidates = sweep;
  for (const auto& column : columns(results)) {
    if (result_text_columns().count(column) == 0 && is_categorical(results, column))
      candidates.push_back(column);
  }
  std::vector<std::string> chosen;
  for (const std::string& key : sweep) {
    const bool of_network = key == "model" || key.starts_with("model.");
    if (of_network && varies(results, key)) chosen.push_back(key);
  }
  std::size_t group_count = groups(results, chosen);
  for (const auto& column : candidates) {
    auto with = chosen;
    with.push_back(column);
    const std::size_t finer_count = groups(results, with);
    if (finer_count > group_count) {
      chosen = with;
      group_count = finer_count;
    }
  }
  name_remaining_rows(results, sweep, chosen);
  return chosen;
}

std::string series_name(const Results& results, const Row& row, const std::vector<std::string>& columns) {
  std::string name;
  for (const auto& column : columns) {
    const std::string text = to_text(at(results, row, column));
    if (text.empty()) continue;  // this part of the sweep does not set the key
    const bool word = text.find_first_of("0123456789.+-") != 0 && text != "true" && text != "false";
    name += (name.empty() ? "" : ", ") + (word ? "" : last_word(column) + "=") + text;
  }
  return name;
}

}  // namespace stepcast
