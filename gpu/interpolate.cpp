#include "gpu/interpolate.hpp"

#include <fmt/format.h>

#include "core/error.hpp"
#include "models/trace_times.hpp"

namespace stepcast {
namespace {

struct Neighbours {
  const Trace *below = nullptr, *above = nullptr;
};

Neighbours neighbours(const std::vector<Trace>& traces, std::int64_t batch) {
  Neighbours n;
  for (const Trace& trace : traces) {
    if (trace.batch <= batch && (n.below == nullptr || trace.batch > n.below->batch)) n.below = &trace;
    if (trace.batch >= batch && (n.above == nullptr || trace.batch < n.above->batch)) n.above = &trace;
  }
  return n;
}

}  // namespace

StepForecast forecast_step(const std::vector<Trace>& traces, std::int64_t batch) {
  const Neighbours n = neighbours(traces, batch);
  if (n.below == nullptr || n.above == nullptr) {
    std::int64_t least = traces.at(0).batch, most = least;
    for (const Trace& trace : traces) {
      least = std::min(least, trace.batch);
      most = std::max(most, trace.batch);
    }
    throw InputError(fmt::format("--batch: expected {} to {}, which were captured of {}, got {}", least, most,
                                 traces[0].model, batch));
  }
  if (n.below->layers.size() != n.above->layers.size()) {
    throw InputError(fmt::format("traces {} and {}: other layers", n.below->name, n.above->name));
  }
  const double share = n.below == n.above ? 0
                                          : static_cast<double>(batch - n.below->batch) /
                                                static_cast<double>(n.above->batch - n.below->batch);
  StepForecast forecast{{}, n.below->batch, n.above->batch};
  for (std::size_t i = 0; i < n.below->layers.size(); ++i) {
    const auto low = passes(n.below->layers[i]), high = passes(n.above->layers[i]);
    for (std::size_t k = 0; k < low.size(); ++k) {
      forecast.step += (1 - share) * median(low[k]->seconds) + share * median(high[k]->seconds);
    }
  }
  return forecast;
}

}  // namespace stepcast
