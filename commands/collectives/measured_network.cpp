#include "commands/collectives/measured_network.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/error.hpp"
#include "core/os/files.hpp"
#include "core/text.hpp"
#include "forecast/measured/training_log.hpp"

namespace stepcast {
namespace {

constexpr double kLargeSpread = 0.10, kSmallSpread = 0.16;

std::vector<CollectiveRow> rows_of(const MeasuredCollective& table, const Platform& platform) {
  if (platform.software.nccl == 0)
    throw InputError(fmt::format("{}: the platform {} does not name NCCL; add software: {{nccl: \"2.18\"}}",
                                 table.file, platform.name));
  const NcclRanks group = first_devices(platform, table.ranks, table.per_node);
  return collective_rows(platform, group, table.operation, table.tests);
}

/// A file, and the collective or the number of ranks that stands before it.
struct TableFile {
  AskedCollective asked;
  std::string file;
};

TableFile table_file(const std::string& text) {
  const auto equals = text.find('=');
  const auto& names = nccl_operation_names();
  const std::string name = text.substr(0, equals);
  if (equals != std::string::npos && std::ranges::find(names, name) != names.end())
    return {{.name = name}, text.substr(equals + 1)};
  const RunFile runs = parse_run_file(text);
  return {{.ranks = static_cast<int>(parse_integer(runs.workers).value_or(0))}, runs.file};
}

/// The same as measured_collective, whose errors name options that `run` does not have.
MeasuredCollective table_of(NcclTests tests, const TableFile& named) {
  try {
    return measured_collective(std::move(tests), named.file, named.asked);
  } catch (const InputError& error) {
    throw InputError(
        fmt::format("{}; for run, write the collective or the number of ranks before the file, such as 16={}",
                    error.what(), named.file));
  }
}

double log_density(const std::optional<double>& share, double spread) {
  return share ? -0.5 * std::pow(std::log1p(*share) / spread, 2) : 0;
}

std::string bias_text(const std::optional<double>& share, const char* range) {
  return share ? fmt::format(" {:+.0f} % {}", 100 * *share, range) : "";
}

}  // namespace

std::string measured_file(const std::string& text) {
  return table_file(text).file;
}

namespace {

bool is_nccl_tests(const std::string& text) {
  const auto begin = text.find_first_not_of(" \n\r\t");
  return text.find("busbw") != std::string::npos || (begin != std::string::npos && text[begin] == '{');
}

/// A profile is no measured run: its layers and its host are those of a trace.
void refuse_profile(const std::string& text, const std::string& file) {
  if (!text.starts_with("\x1f\x8b") && text.find("\"traceEvents\"") == std::string::npos) return;
  throw InputError(
      fmt::format("{0}:1:1: expected measured runs, got a profile of PyTorch, from which forecasts learn the "
                  "times of layers and of the host as from a trace: stepcast import {0} --model MODEL -o "
                  "trace.yaml, then run with --set trace=trace.yaml",
                  file));
}

}  // namespace

MeasuredFiles measured_files(const std::vector<std::string>& texts) {
  MeasuredFiles files;
  for (const std::string& text : texts) {
    const TableFile named = table_file(text);
    const std::string& file = named.file;
    const std::string content = read_file(file);
    refuse_profile(content, file);
    if (!is_nccl_tests(content)) {
      const RunFile runs = parse_run_file(text);
      files.runs.push_back({runs.file, read_runs(runs)});
      continue;
    }
    NcclTests tests = read_nccl_tests(content, file);
    if (tests.operation.empty() && named.asked.name.empty())
      throw InputError(fmt::format(
          "{0}:1:1: the table does not name its collective; write it before the file, such as all_reduce={0}",
          file));
    files.network.push_back(table_of(std::move(tests), named));
  }
  return files;
}

double log_likelihood(const std::vector<MeasuredCollective>& tables, const Platform& platform) {
  double sum = 0;
  for (const MeasuredCollective& table : tables) {
    const auto rows = rows_of(table, platform);
    sum += log_density(bias(rows, SizeRange::from), kLargeSpread) +
           log_density(bias(rows, SizeRange::below), kSmallSpread);
  }
  return sum;
}

std::function<double(const Experiment&)> network_likelihood(const std::vector<MeasuredCollective>& tables) {
  if (tables.empty()) return {};
  return [tables](const Experiment& one) { return log_likelihood(tables, one.platform); };
}

std::vector<std::string> measured_network_lines(const std::vector<MeasuredCollective>& tables,
                                                const Platform& platform) {
  std::vector<std::string> lines;
  for (const MeasuredCollective& table : tables) {
    const auto rows = rows_of(table, platform);
    lines.push_back(fmt::format("measured: {} over {} ranks in {}; times with the draws that remain:{}{}",
                                nccl_operation_names()[ordinal(table.operation)], table.ranks, table.file,
                                bias_text(bias(rows, SizeRange::from), "from 1 MiB on"),
                                bias_text(bias(rows, SizeRange::below), "below")));
  }
  return lines;
}

}  // namespace stepcast
