#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "commands/collectives/estimate.hpp"
#include "core/error.hpp"

namespace stepcast {
namespace {

NcclOperation operation_of(const NcclTests& tests, const std::string& asked, const std::string& file) {
  const std::string name = collective_of(tests, asked, file);
  const auto& names = nccl_operation_names();
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end())
    throw InputError(
        fmt::format("{}: a table of {}_perf; expected one of: {}", file, name, fmt::join(names, ", ")));
  return static_cast<NcclOperation>(found - names.begin());
}

/// The ranks that the user gives, else those of the table: its list of ranks, or busbw / algbw.
int ranks_of(const MeasuredCollective& measured, int asked) {
  if (asked > 0) return asked;
  const NcclTests& tests = measured.tests;
  if (tests.ranks > 0) return tests.ranks;
  const int ranks = ranks_of_bandwidths(measured.operation, tests.algorithm_bandwidth, tests.bus_bandwidth);
  if (ranks == 0)
    throw InputError(fmt::format(
        "{}:1:1: the table does not say how many ranks it had, and its bandwidths do not tell: give --gpus",
        measured.file));
  return ranks;
}

/// @throws InputError if the bandwidths of the table are not those of the collective over these ranks
void check_bandwidths(const MeasuredCollective& measured) {
  constexpr double kRounding = 0.03;  // of printed bandwidths from 1 GB/s on
  const NcclTests& tests = measured.tests;
  if (tests.algorithm_bandwidth < 1) return;
  const double factor = tests.bus_bandwidth / tests.algorithm_bandwidth;
  const double expected = bus_factor(measured.operation, measured.ranks);
  if (std::abs(factor - expected) <= kRounding) return;
  throw InputError(fmt::format(
      "{}:1:1: busbw / algbw is {:.3g} in this table, and {:.3g} for {} of {} ranks: give "
      "--collective and --gpus",
      measured.file, factor, expected, nccl_operation_names()[ordinal(measured.operation)], measured.ranks));
}

/// Ranks on each node: of the user, else of the hosts in the table; 0: not known.
int ranks_per_node(const MeasuredCollective& measured, int asked) {
  const NcclTests& tests = measured.tests;
  if (asked > 0 || tests.nodes == 0 || tests.ranks != measured.ranks) return asked;
  if (measured.ranks % tests.nodes != 0)
    throw InputError(
        fmt::format("{}:1:1: {} ranks on {} hosts: expected equally many on each; give --gpus-per-node",
                    measured.file, measured.ranks, tests.nodes));
  return measured.ranks / tests.nodes;
}

}  // namespace

MeasuredCollective measured_collective(NcclTests tests, const std::string& file,
                                       const AskedCollective& asked) {
  MeasuredCollective measured;
  measured.file = file;
  measured.operation = operation_of(tests, asked.name, file);
  measured.tests = std::move(tests);
  measured.ranks = ranks_of(measured, asked.ranks);
  if (measured.ranks < 2) throw InputError("--gpus: expected at least 2");
  check_bandwidths(measured);
  measured.per_node = ranks_per_node(measured, asked.per_node);
  return measured;
}

}  // namespace stepcast
