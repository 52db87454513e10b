#include "models/layer_times/interpolated_trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "core/error.hpp"

namespace stepcast {
namespace {

PassSamples scaled(PassSamples samples, double factor) {
  for (double& seconds : samples.seconds) seconds *= factor;
  for (double& seconds : samples.cpu_seconds) seconds *= factor;
  return samples;
}

PassSamples interpolated(const PassSamples& lower, const PassSamples& upper, double upper_share) {
  const double from = median(lower.seconds).value, to = median(upper.seconds).value;
  const double wanted = (1 - upper_share) * from + upper_share * to;
  if (to > 0) return scaled(upper, wanted / to);
  return from > 0 ? scaled(lower, wanted / from) : upper;
}

}  // namespace

BatchNeighbors batch_neighbors(const std::vector<const Trace*>& traces, std::int64_t batch) {
  if (traces.empty()) throw std::invalid_argument("batch_neighbors: expected at least one trace");
  const Trace *lower = nullptr, *upper = nullptr;
  for (const Trace* trace : traces) {
    if (trace->batch <= batch && (lower == nullptr || trace->batch > lower->batch)) lower = trace;
    if (trace->batch >= batch && (upper == nullptr || trace->batch < upper->batch)) upper = trace;
  }
  if (lower == nullptr) return {upper, upper};
  if (upper == nullptr || lower->batch == batch) return {lower, lower};
  return {lower, upper,
          static_cast<double>(batch - lower->batch) / static_cast<double>(upper->batch - lower->batch)};
}

Trace interpolated_trace(const BatchNeighbors& neighbors, std::int64_t batch) {
  const Trace &lower = *neighbors.lower, &upper = *neighbors.upper;
  Trace trace = upper;
  if (!neighbors.between()) return trace;
  if (lower.layers.size() != upper.layers.size())
    throw InputError(fmt::format("traces {} and {}: not of the same layers", lower.name, upper.name));
  trace.name = fmt::format("{} and {}, interpolated", lower.name, upper.name);
  trace.batch = batch;
  trace.step_seconds.clear();
  trace.step_cpu_seconds.clear();
  trace.graph_step_seconds.clear();
  for (const std::string& flag : lower.flags) {
    if (std::find(trace.flags.begin(), trace.flags.end(), flag) == trace.flags.end())
      trace.flags.push_back(flag);
  }
  for (std::size_t i = 0; i < trace.layers.size(); ++i) {
    for (const auto pass : {&LayerTrace::forward, &LayerTrace::backward_data, &LayerTrace::backward_weights,
                            &LayerTrace::update})
      trace.layers[i].*pass =
          interpolated(lower.layers[i].*pass, upper.layers[i].*pass, neighbors.upper_share);
  }
  return trace;
}

}  // namespace stepcast
