#include <fmt/format.h>

#include "core/error.hpp"
#include "core/os/files.hpp"
#include "forecast/forecast.hpp"
#include "report/results/results.hpp"

namespace stepcast {
namespace {

constexpr const char* kFailed = "failed";

/// The simulation's name and its row without the columns that only the file has.
std::pair<std::string, Row> named_row(Row row) {
  std::string name = row.text("simulation");
  std::erase_if(row.cells,
                [](const auto& cell) { return cell.first == "simulation" || cell.first == "scenario"; });
  return {std::move(name), std::move(row)};
}

}  // namespace

Journal read_journal(const std::filesystem::path& file) {
  Journal rows;
  if (file.empty() || !std::filesystem::exists(file)) return rows;
  const std::string text = read_file(file);
  const std::size_t whole = text.rfind('\n') + 1;  // npos + 1 is 0
  // The last line may be incomplete; the next line would be appended to it.
  if (whole < text.size()) std::filesystem::resize_file(file, whole);
  for (Row& row : read_json_lines(text.substr(0, whole), file.string()).rows) {
    auto [name, content] = named_row(std::move(row));
    if (failure_of(content).empty()) rows[name] = std::move(content);
  }
  return rows;
}

Journal merged_journals(const std::vector<std::filesystem::path>& files) {
  Journal all;
  for (const auto& file : files) {
    for (Row& row : read_json_lines(read_file(file), file.string(), TornLine::drop).rows) {
      auto [name, content] = named_row(std::move(row));
      const auto [known, is_new] = all.emplace(name, content);
      if (is_new || !failure_of(content).empty()) continue;
      if (failure_of(known->second).empty() && to_json_line({}, known->second) != to_json_line({}, content))
        throw InputError(
            fmt::format("{}: \"{}\" differs from its result in another shard", file.string(), name));
      known->second = std::move(content);
    }
  }
  return all;
}

void add_to_journal(const std::filesystem::path& file, const std::string& scenario, const std::string& name,
                    const Row& row) {
  if (file.empty()) return;
  append_line(file, to_json_line({scenario, {}}, with_first("simulation", name, row)));
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
