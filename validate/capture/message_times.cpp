#include "validate/capture/message_times.hpp"

#include <algorithm>
#include <map>

#include "kernels/timing/step_timer.hpp"
#include "report/statistics/statistics.hpp"
#include "runtime/collectives/schedule_executor.hpp"
#include "runtime/devices/stage_boundary.hpp"
#include "runtime/transport/transport.hpp"
#include "strategies/collectives/algorithms.hpp"

namespace stepcast {

double uninterrupted_mean(const std::vector<double>& seconds) {
  const double limit = 3 * median_of(seconds);
  std::vector<double> kept;
  std::ranges::copy_if(seconds, std::back_inserter(kept), [limit](double one) { return one <= limit; });
  return mean(kept);
}

void InStepAllReduceTimes::all_reduce(Transport& transport, std::span<float> summed) {
  const auto elements = static_cast<std::int64_t>(summed.size());
  const auto rounds = rounds_of(ring_all_reduce({transport.ranks(), 1}), transport.rank(), elements);
  const Instant begin = now();
  execute_rounds(transport, rounds, summed.data());
  pending_.emplace_back(elements, now().wall - begin.wall);
}

void InStepAllReduceTimes::accept_pending(bool counts) {
  for (const auto& [elements, seconds] : pending_) {
    if (counts) seconds_[elements].push_back(seconds);
  }
  pending_.clear();
}

std::vector<Row> InStepAllReduceTimes::rows(Transport& transport) const {
  std::vector<Row> rows;
  for (const auto& [elements, own] : seconds_) {
    const auto ranks = gather_on_rank_0(transport, own);
    if (ranks.empty()) continue;
    std::vector<double> seconds = ranks.front();
    for (const std::vector<double>& rank : ranks) {
      for (std::size_t i = 0; i < std::min(seconds.size(), rank.size()); ++i)
        seconds[i] = std::min(seconds[i], rank[i]);
    }
    Row row;
    row.set("what", std::string("all_reduce"));
    row.set("algorithm", std::string("ring"));
    row.set("bytes", 4.0 * static_cast<double>(elements));
    row.set("seconds", uninterrupted_mean(seconds));
    row.set("low", quantile(seconds, 0.25));
    row.set("high", quantile(seconds, 0.75));
    row.set("repeats", static_cast<std::int64_t>(seconds.size()));
    rows.push_back(row);
  }
  return rows;
}

namespace {

void add(PassSamples& pass, Seconds more) {
  for (double& seconds : pass.seconds) seconds += more.value;
  for (double& seconds : pass.cpu_seconds) seconds += more.value;
}

}  // namespace

void add_host_time(Trace& trace, int layer, Seconds forward, Seconds backward) {
  for (auto i = static_cast<std::size_t>(layer); i < trace.layers.size(); ++i) {
    PassSamples& pass = trace.layers[i].forward;
    if (pass.seconds.empty()) continue;
    add(pass, forward);
    break;
  }
  for (int i = layer; i >= 0; --i) {
    LayerTrace& one = trace.layers.at(static_cast<std::size_t>(i));
    PassSamples& pass = one.backward_data.seconds.empty() ? one.backward_weights : one.backward_data;
    if (!pass.seconds.empty()) return add(pass, backward);
  }
}

Seconds message_host_time(const Results& links, Bytes size) {
  std::map<double, double> known{{0, 0}};
  for (const Row& row : links.rows) {
    if (row.text("what") == "message_host")
      known[row.number("bytes").value_or(0)] = row.number("seconds").value_or(0) / 2;
  }
  if (known.size() == 1) return {0};
  auto upper = known.lower_bound(size.value);
  if (upper == known.begin()) return {0};
  if (upper == known.end()) return {known.rbegin()->second * size.value / known.rbegin()->first};
  const auto lower = std::prev(upper);
  const double share = (size.value - lower->first) / (upper->first - lower->first);
  return {lower->second + share * (upper->second - lower->second)};
}

Trace with_messages(Trace trace, const Model& model, const NetworkSharing& sharing,
                    const std::function<Seconds(Bytes)>& host_time) {
  for (const LayerRange& stage : sharing.stages) {
    if (stage.first == 0) continue;
    const StageBoundary boundary = boundary_before(model, stage.first, sharing.micro_batch);
    const Seconds each = host_time({4.0 * static_cast<double>(boundary.size)});
    for (const int layer : {stage.first - 1, stage.first}) add_host_time(trace, layer, each, each);
  }
  return trace;
}

}  // namespace stepcast
