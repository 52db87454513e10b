#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <nlohmann/json.hpp>

#include "core/cli/command_line.hpp"
#include "core/error.hpp"
#include "report/results/results.hpp"
#include "report/text/display_text.hpp"

namespace stepcast {
namespace {

struct Field {
  std::string text;
  bool quoted = false;
};

struct Record {
  std::vector<Field> fields;
  int line = 1;
};

/// The value of an unquoted field.
Cell cell_of(const std::string& text) {
  if (text.empty()) return {};
  if (text == "true" || text == "false") return text == "true";
  const char* const end = text.data() + text.size();
  std::int64_t count = 0;
  if (const auto read = std::from_chars(text.data(), end, count); read.ptr == end && read.ec == std::errc()) {
    return text == "-0" ? Cell(-0.0) : Cell(count);
  }
  double number = 0;
  // Excludes "inf" and "nan", which the number parser accepts.
  const bool decimal = text.find_first_not_of("0123456789+-.eE") == std::string::npos;
  if (const auto read = std::from_chars(text.data(), end, number);
      decimal && read.ptr == end && read.ec == std::errc()) {
    return number;
  }
  return text;
}

std::string in_quotes(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"') out += '"';
    out += c;
  }
  return out + '"';
}

/// True for text that a spreadsheet would calculate: after any apostrophes it begins with a sign of formulas
/// and goes on with something to calculate, and it is no number. The relation "=" of a published figure is
/// none.
bool is_formula(const std::string& text) {
  const auto begin = text.find_first_not_of('\'');
  if (begin == std::string::npos || std::string_view("=+-@\t\r").find(text[begin]) == std::string::npos)
    return false;
  const std::string rest = text.substr(begin + 1);
  return std::ranges::any_of(rest,
                             [](unsigned char c) { return c > 127 || std::isalnum(c) != 0 || c == '('; }) &&
         std::holds_alternative<std::string>(cell_of(text.substr(begin)));
}

std::string field_of(const Cell& cell) {
  const auto* text = std::get_if<std::string>(&cell);
  if (text == nullptr) return to_text(cell);
  if (is_formula(*text)) return in_quotes("'" + *text);  // a spreadsheet shows it as text; reading removes it
  const bool plain = text->find_first_of("\",\r\n") == std::string::npos;
  const bool stays_text = std::holds_alternative<std::string>(cell_of(*text));
  return plain && stays_text ? *text : in_quotes(*text);
}

/// Splits CSV text into records; `fail` throws InputError with a line number and a message.
class Reader {
 public:
  Reader(std::string_view text, const std::string& file_name) : text_(text), file_name_(file_name) {}

  bool at_end() const { return i_ == text_.size(); }

  Record record() {
    Record record{{}, line_};
    do {
      record.fields.push_back(
          without_guard(i_ < text_.size() && text_[i_] == '"' ? quoted_field() : plain_field()));
    } while (taken(','));
    taken('\r');
    if (!taken('\n') && !at_end())
      fail(line_, "expected a comma or the end of the line after a quoted field");
    return record;
  }

  [[noreturn]] void fail(int line, std::string_view message) const {
    throw InputError(fmt::format("{}:{}:1: {}", file_name_, line, message));
  }

 private:
  bool taken(char c) {
    if (at_end() || text_[i_] != c) return false;
    ++i_;
    line_ += c == '\n';
    return true;
  }

  /// Removes the apostrophe before a formula, which field_of adds.
  static Field without_guard(Field field) {
    if (field.text.starts_with('\'') && is_formula(field.text)) field.text.erase(0, 1);
    return field;
  }

  Field plain_field() {
    const auto end = std::min(text_.find_first_of(",\r\n", i_), text_.size());
    Field field{std::string(text_.substr(i_, end - i_)), false};
    i_ = end;
    return field;
  }

  Field quoted_field() {
    Field field{"", true};
    const int first_line = line_;
    ++i_;
    while (!at_end()) {
      if (taken('"') && !(i_ < text_.size() && text_[i_] == '"')) return field;
      if (at_end()) break;
      line_ += text_[i_] == '\n';
      field.text += text_[i_++];
    }
    fail(first_line, "expected a closing quote, got the end of the file");
  }

  std::string_view text_;
  const std::string& file_name_;
  std::size_t i_ = 0;
  int line_ = 1;
};

}  // namespace

std::string to_csv(const Results& results) {
  const auto names = columns(results);
  std::string out;
  for (std::size_t i = 0; i < names.size(); ++i) out += (i ? "," : "") + field_of(names[i]);
  out += '\n';
  for (const Row& row : results.rows) {
    for (std::size_t i = 0; i < names.size(); ++i)
      out += (i ? "," : "") + field_of(at(results, row, names[i]));
    out += '\n';
  }
  return out;
}

Results read_csv(std::string_view text, const std::string& file_name) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";  // spreadsheets write it
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  Reader reader(text, file_name);
  if (reader.at_end()) reader.fail(1, "expected a header line, got an empty file");
  const auto header = reader.record();
  Results results;
  while (!reader.at_end()) {
    const auto record = reader.record();
    if (record.fields.size() != header.fields.size()) {
      reader.fail(record.line, fmt::format("expected {} fields as in the header, got {}",
                                           header.fields.size(), record.fields.size()));
    }
    Row row;
    for (std::size_t i = 0; i < record.fields.size(); ++i) {
      const Field& field = record.fields[i];
      auto cell = field.quoted ? Cell(field.text) : cell_of(field.text);
      if (!std::holds_alternative<std::monostate>(cell)) row.set(header.fields[i].text, std::move(cell));
    }
    results.rows.push_back(std::move(row));
  }
  if (!results.rows.empty()) results.scenario = results.rows.front().text("scenario");
  return results;
}

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

void add_json_rows(const std::string& table, const Results& results) {
  for (const Row& row : results.rows) add_json_row(table, to_json_line(results, row));
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
