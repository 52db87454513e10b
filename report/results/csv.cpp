#include "report/results/csv.hpp"

#include <fmt/format.h>

#include <charconv>

#include "core/error.hpp"

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

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"') out += '"';
    out += c;
  }
  return out + '"';
}

std::string field_of(const Cell& cell) {
  const auto* text = std::get_if<std::string>(&cell);
  if (text == nullptr) return to_text(cell);
  const bool plain = text->find_first_of("\",\r\n") == std::string::npos;
  const bool stays_text = std::holds_alternative<std::string>(cell_of(*text));
  return plain && stays_text ? *text : quoted(*text);
}

/// Splits CSV text into records; `fail` throws InputError with a line number and a message.
class Reader {
 public:
  Reader(std::string_view text, const std::string& file_name) : text_(text), file_name_(file_name) {}

  bool at_end() const { return i_ == text_.size(); }

  Record record() {
    Record record{{}, line_};
    do {
      record.fields.push_back(i_ < text_.size() && text_[i_] == '"' ? quoted_field() : plain_field());
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

}  // namespace stepcast
