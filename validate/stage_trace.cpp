#include "validate/stage_trace.hpp"

#include <algorithm>
#include <map>

#include "validate/crossing.hpp"

namespace stepcast {
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
    const Crossing crossing = crossing_at(model, stage.first, sharing.micro_batch);
    const Seconds each = host_time({4.0 * static_cast<double>(crossing.size)});
    for (const int layer : {stage.first - 1, stage.first}) add_host_time(trace, layer, each, each);
  }
  return trace;
}

}  // namespace stepcast
