#include "forecast/processes/journal.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <optional>
#include <string_view>
#include <utility>

#include "core/error.hpp"
#include "report/results/manifest.hpp"

namespace stepcast {
namespace {

constexpr const char* kFailed = "failed";
constexpr std::string_view kChecksum = ",\"checksum\":\"";
constexpr std::size_t kDigits = 16, kEnd = kChecksum.size() + kDigits + 2;

/// The checksum with its key, and the end of the object: `,"checksum":"0123456789abcdef"}`.
std::string checksum_of(const std::string& object) {
  return fmt::format("{}{}\"}}", kChecksum, sha256(object).substr(0, kDigits));
}

struct NamedRow {
  std::string name;
  Row row;  ///< without the columns that only the file has
};

/// Whether a row that has a step time has one that a simulation can give.
bool is_possible(const Row& row) {
  if (std::holds_alternative<std::monostate>(row.at("step_seconds"))) return true;
  const auto seconds = row.number("step_seconds");
  return seconds && std::isfinite(*seconds) && *seconds > 0;
}

/// Nothing for a line that is not as it was written.
std::optional<NamedRow> read_line(std::string_view line, const std::string& file) {
  if (line.size() <= kEnd) return std::nullopt;
  const std::string object = std::string(line.substr(0, line.size() - kEnd)) + "}";
  if (line.substr(line.size() - kEnd) != checksum_of(object)) return std::nullopt;
  Row row = std::move(read_json_lines(object, file).rows.at(0));
  std::string name = row.text("simulation");
  std::erase_if(row.cells,
                [](const auto& cell) { return cell.first == "simulation" || cell.first == "scenario"; });
  if (!is_possible(row)) return std::nullopt;
  return NamedRow{std::move(name), std::move(row)};
}

/// Takes the first line off `text`; nothing if no whole line is left.
std::optional<std::string_view> taken_line(std::string_view& text) {
  const auto length = text.find('\n');
  if (length == std::string_view::npos) return std::nullopt;
  const auto line = text.substr(0, length);
  text.remove_prefix(length + 1);
  return line;
}

}  // namespace

Journal read_journal(const std::filesystem::path& file) {
  Journal rows;
  if (file.empty() || !std::filesystem::exists(file)) return rows;
  const std::string text = read_file(file);
  std::string good;
  int damaged = 0, first = 0, number = 0;
  for (std::string_view rest = text; const auto line = taken_line(rest);) {
    ++number;
    if (auto read = read_line(*line, file.string())) {
      good.append(*line).append("\n");
      if (failure_of(read->row).empty()) rows[read->name] = std::move(read->row);
    } else if (++damaged == 1) {
      first = number;
    }
  }
  if (damaged > 0)
    fmt::print(stderr, "{}:{}: damaged; {} line{} simulated again\n", file.string(), first, damaged,
               damaged == 1 ? " is" : "s from there on are");
  if (good.size() < text.size()) write_atomically(file, good);
  return rows;
}

Journal merged_journals(const std::vector<std::filesystem::path>& files) {
  Journal all;
  for (const auto& file : files) {
    const std::string text = read_file(file);
    int number = 0;
    for (std::string_view rest = text; const auto line = taken_line(rest);) {
      auto read = read_line(*line, file.string());
      ++number;
      if (!read)
        throw InputError(
            fmt::format("{}:{}:1: damaged or altered; run this shard again with --resume, which simulates "
                        "such lines again",
                        file.string(), number));
      const auto [known, is_new] = all.emplace(read->name, read->row);
      if (is_new || !failure_of(read->row).empty()) continue;
      if (failure_of(known->second).empty() && to_json_line({}, known->second) != to_json_line({}, read->row))
        throw InputError(
            fmt::format("{}: \"{}\" differs from its result in another shard", file.string(), read->name));
      known->second = std::move(read->row);
    }
  }
  return all;
}

std::string journal_line(const std::string& scenario, const Row& row) {
  std::string line = to_json_line({scenario, {}}, row);
  const std::string checksum = checksum_of(line);
  line.pop_back();
  return line + checksum;
}

void JournalWriter::add(const std::string& scenario, const std::string& name, const Row& row) {
  if (file_.empty()) return;
  append_line(file_, journal_line(scenario, with_first("simulation", name, row)));
  waits_ = true;
  if (Clock::now() - flushed_ >= std::chrono::seconds(1)) flush();
}

void JournalWriter::flush() {
  if (!std::exchange(waits_, false)) return;
  flush_(file_);
  flushed_ = Clock::now();
}

Row failed_row(const std::string& reason) {
  Row row;
  row.set(kFailed, reason);
  return row;
}

std::string failure_of(const Row& row) {
  return row.text(kFailed);
}

}  // namespace stepcast
