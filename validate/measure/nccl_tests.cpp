#include "validate/measure/nccl_tests.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>

#include "core/error.hpp"

namespace stepcast {

Seconds NcclTestsRow::time() const {
  if (!in_place) return *out_of_place;
  return out_of_place ? std::min(*out_of_place, *in_place) : *in_place;
}

std::string NcclTests::doubts() const {
  std::string text;
  if (wrong_rows > 0)
    text = fmt::format("{} of {} rows have wrong results (#wrong)", wrong_rows, rows.size());
  const bool other = std::ranges::any_of(types, [](const std::string& type) { return type != "float"; });
  if (other)
    text += fmt::format("{}rows of {} count by their bytes, as those of float", text.empty() ? "" : "; ",
                        fmt::join(types, ", "));
  return text;
}

std::string nccl_operation_in(const std::string& line) {
  const auto end = line.find("_perf");
  if (end == std::string::npos) return "";
  auto begin = end;
  while (begin > 0 &&
         (std::islower(static_cast<unsigned char>(line[begin - 1])) != 0 || line[begin - 1] == '_'))
    --begin;
  return line.substr(begin, end - begin);
}

namespace {

constexpr double kLargestNcclFigure = 1e15;  // bytes and microseconds that a file may state

[[noreturn]] void refuse(const std::string& file, const std::string& what) {
  throw InputError(fmt::format("{}:1:1: {}", file, what));
}

std::optional<Seconds> json_time(const nlohmann::json& row, const char* key, const std::string& file) {
  const auto found = row.find(key);
  if (found == row.end() || found->is_null()) return std::nullopt;
  const double time = found->at("time").get<double>();
  if (!(time > 0 && time <= kLargestNcclFigure))
    refuse(file, fmt::format("expected a time in us, got {:.6g}", time));
  return Seconds{1e-6 * time};
}

/// The ranks and hosts. Each process lists its first device only, and has `nthreads` times `ngpus` of them.
/// Source: writeDeviceReport in src/util.cu of nccl-tests.
void read_json_ranks(const nlohmann::json& config, NcclTests& tests) {
  constexpr std::int64_t kMost = 1 << 20;
  const auto each = config.value("nthreads", std::int64_t{1}) * config.value("ngpus", std::int64_t{1});
  const auto& devices = config.at("devices");
  const std::int64_t processes = devices.size();
  if (each < 1 || each > kMost || processes * each > kMost) return;
  tests.ranks = processes * each;
  std::set<std::string> hosts;
  for (const auto& device : devices) {
    if (device.contains("hostname")) hosts.insert(device.at("hostname").get<std::string>());
  }
  tests.nodes = hosts.size();
}

/// The bandwidths of a row, if it is the fastest so far.
void read_json_bandwidths(const nlohmann::json& row, const char* key, NcclTests& tests) {
  const auto found = row.find(key);
  if (found == row.end() || !found->is_object()) return;
  const double algorithm = found->value("alg_bw", 0.0), bus = found->value("bus_bw", 0.0);
  if (algorithm > tests.algorithm_bandwidth) tests.algorithm_bandwidth = algorithm, tests.bus_bandwidth = bus;
}

bool json_wrong(const nlohmann::json& row, const char* key) {
  const auto found = row.find(key);
  if (found == row.end() || !found->is_object()) return false;
  const auto wrong = found->find("nwrong");
  return wrong != found->end() && wrong->is_number() && wrong->get<double>() > 0;
}

}  // namespace

NcclTests read_nccl_json(std::string_view text, const std::string& file) {
  NcclTests tests;
  const auto root = nlohmann::json::parse(text, nullptr, false);
  if (root.is_discarded() || !root.is_object()) refuse(file, "expected the JSON of nccl-tests");
  try {
    tests.operation = nccl_operation_in(root.at("args").at(0).get<std::string>());
    if (root.contains("config")) read_json_ranks(root.at("config"), tests);
    for (const auto& row : root.at("results")) {
      const double size = row.at("size").get<double>();
      if (!(size >= 0 && size <= kLargestNcclFigure))
        refuse(file, fmt::format("expected a size, got {:.6g}", size));
      const NcclTestsRow read{{size}, json_time(row, "out_of_place", file), json_time(row, "in_place", file)};
      if (size <= 0 || (!read.out_of_place && !read.in_place)) continue;
      tests.rows.push_back(read);
      tests.types.insert(row.value("type", "float"));
      for (const char* key : {"out_of_place", "in_place"}) read_json_bandwidths(row, key, tests);
      if (json_wrong(row, "out_of_place") || json_wrong(row, "in_place")) ++tests.wrong_rows;
    }
  } catch (const nlohmann::json::exception&) {
    refuse(file,
           "expected the JSON of nccl-tests: args, config.devices, results of size and out_of_place.time");
  }
  return tests;
}

}  // namespace stepcast
