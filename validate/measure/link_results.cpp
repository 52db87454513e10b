#include "validate/measure/link_results.hpp"

#include <algorithm>
#include <map>

#include "runtime/collectives/link_table.hpp"
#include "strategies/collectives/algorithm_choice.hpp"
#include "validate/measure/contention_benchmark.hpp"

namespace stepcast {
namespace {

double seconds_of(const Results& results, const std::string& what) {
  for (const Row& row : results.rows) {
    if (row.text("what") == what) return row.number("seconds").value_or(0);
  }
  return 0;
}

AllReduceChoice choice_of(const std::string& algorithm) {
  const auto& names = algorithm_names();
  const auto found = std::find(names.begin(), names.end(), algorithm);
  return {.algorithm = static_cast<Algorithm>(found - names.begin())};
}

std::vector<MessageTime> times_of_ring(const Results& results, int ranks) {
  std::vector<MessageTime> times;
  for (const Row& row : results.rows) {
    if (row.text("what") != "all_reduce" || row.text("algorithm") != "ring") continue;
    times.push_back({{*row.number("bytes") / ranks}, {*row.number("seconds") / (2 * (ranks - 1))}});
  }
  return times;
}

std::vector<MessageTime> times_of_shifts(const Results& results) {
  std::map<double, double> replaced;
  for (const Row& row : results.rows) {
    if (row.text("what") == "shift_replace") replaced[*row.number("bytes")] = *row.number("seconds");
  }
  std::vector<MessageTime> times;
  for (const Row& row : results.rows) {
    if (row.text("what") != "shift_add") continue;
    const auto same = replaced.find(*row.number("bytes"));
    if (same != replaced.end())
      times.push_back({{same->first}, {(same->second + *row.number("seconds")) / 2}});
  }
  return times;
}

}  // namespace

std::vector<MessageTime> message_times(const Results& results, const Cluster& cluster) {
  return cluster.racks == 1 ? times_of_ring(results, cluster.ranks) : times_of_shifts(results);
}

std::vector<AllReduceTime> all_reduce_times(const Results& results, const LinkTable& links, int ranks) {
  std::map<double, AllReduceTime> best;
  for (const Row& row : results.rows) {
    if (row.text("what") != "all_reduce") continue;
    AllReduceTime& one = best[*row.number("bytes")];
    one.bytes = *row.number("bytes");
    const double seconds = *row.number("seconds");
    if (row.text("algorithm") == "library") {
      one.library = seconds;
    } else if (one.measured == 0 || seconds < one.measured) {
      one.measured = seconds;
      one.algorithm = row.text("algorithm");
    }
  }
  std::vector<AllReduceTime> times;
  for (auto& [bytes, one] : best) {
    if (one.measured == 0) continue;
    const auto schedule = all_reduce_schedule(choice_of(one.algorithm), {ranks, 1}, {bytes});
    one.predicted = schedule_time(*schedule, links, {bytes}).value;
    times.push_back(one);
  }
  return times;
}

Contention contention_of(const Results& results) {
  Contention sharing;
  for (const Row& row : results.rows) {
    const std::string what = row.text("what");
    const double rate = row.number("bytes").value_or(0) / row.number("seconds").value_or(1);
    if (what == "memory_alone") sharing.memory_alone = rate;
    if (what == "memory_together") sharing.memory_together = rate;
  }
  sharing.hand_over = seconds_of(results, "hand_over");
  const double background = seconds_of(results, "compute_beside");
  if (background > 0) {
    sharing.compute_slowdown = compute_slowdown(seconds_of(results, "compute_alone"),
                                                seconds_of(results, "all_reduce_alone"), background);
  }
  return sharing;
}

}  // namespace stepcast
