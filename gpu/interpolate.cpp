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

/// Of steps without events inside to the sum over layers; 1 where none were timed.
double untouched_ratio(const Trace& trace) {
  const double sum = step_time(trace).value, untouched = median(trace.step_seconds).value;
  return sum > 0 && untouched > 0 ? untouched / sum : 1;
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
  const double ratio = (1 - share) * untouched_ratio(*n.below) + share * untouched_ratio(*n.above);
  StepForecast forecast{{}, {}, n.below->batch, n.above->batch};
  for (std::size_t i = 0; i < n.below->layers.size(); ++i) {
    const LayerTrace &low = n.below->layers[i], &high = n.above->layers[i];
    const auto add = [&](const PassSamples& below, const PassSamples& above, Seconds& sum) {
      sum += ratio * ((1 - share) * median(below.seconds) + share * median(above.seconds));
    };
    for (std::size_t k = 0; k < passes(low).size(); ++k)
      add(*passes(low)[k], *passes(high)[k], forecast.step);
    add(low.update, high.update, forecast.update);
  }
  return forecast;
}

}  // namespace stepcast
