#include "report/results/json_lines.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "report/text/display_text.hpp"

namespace stepcast {
namespace {

std::string json_of(const Cell& cell) {
  if (const auto* text = std::get_if<std::string>(&cell)) return json_text(*text);
  if (const auto* number = std::get_if<double>(&cell)) {
    const auto digits = shortest(*number);
    if (digits.empty()) return "null";
    return digits.find_first_of(".e") == std::string::npos ? digits + ".0" : digits;
  }
  return std::holds_alternative<std::monostate>(cell) ? "null" : to_text(cell);
}

/// True for an integer that a cell can hold; larger integers become doubles.
bool is_count(const nlohmann::ordered_json& value) {
  return value.is_number_integer() && !(value.is_number_unsigned() && value.get<std::uint64_t>() > INT64_MAX);
}

/// Converts a JSON value to a cell. Returns false if that is not possible.
bool set_cell(Row& row, const std::string& column, const nlohmann::ordered_json& value) {
  if (value.is_string()) {
    row.set(column, value.get<std::string>());
  } else if (value.is_boolean()) {
    row.set(column, value.get<bool>());
  } else if (is_count(value)) {
    row.set(column, value.get<std::int64_t>());
  } else if (value.is_number()) {
    row.set(column, value.get<double>());
  } else {
    return value.is_null();
  }
  return true;
}

std::optional<Row> row_of(std::string_view line) {
  const auto object = nlohmann::ordered_json::parse(line, nullptr, false);
  if (!object.is_object()) return std::nullopt;
  Row row;
  for (const auto& [column, value] : object.items()) {
    if (!set_cell(row, column, value)) return std::nullopt;
  }
  return row;
}

}  // namespace

std::string to_json_line(const Results& results, const Row& row) {
  std::string out = "{" + json_text("scenario") + ":" + json_of(at(results, row, "scenario"));
  for (const auto& [column, cell] : row.cells) {
    if (column != "scenario") out += "," + json_text(column) + ":" + json_of(cell);
  }
  return out + "}";
}

std::string to_json_lines(const Results& results) {
  std::string out;
  for (const Row& row : results.rows) out += to_json_line(results, row) + "\n";
  return out;
}

Results read_json_lines(std::string_view text, const std::string& file_name, TornLine torn) {
  Results results;
  for (int line = 1; !text.empty(); ++line) {
    const auto length = text.find('\n');
    const bool complete = length != std::string_view::npos;
    auto row = row_of(text.substr(0, length));
    if (!row && !complete && torn == TornLine::drop) break;
    if (!row) {
      throw InputError(
          fmt::format("{}:{}:1: expected a JSON object of text, numbers and true or false", file_name, line));
    }
    results.rows.push_back(std::move(*row));
    text.remove_prefix(complete ? length + 1 : text.size());
  }
  if (!results.rows.empty()) results.scenario = results.rows.front().text("scenario");
  return results;
}

}  // namespace stepcast
