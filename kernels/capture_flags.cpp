#include "kernels/capture_flags.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <chrono>
#include <cmath>

#include "kernels/bootstrap.hpp"
#include "models/trace_times.hpp"

namespace stepcast {

void flag_difference(const std::vector<double>& inside, const std::vector<double>& outside,
                     const CaptureOptions& options, Trace& trace) {
  const Interval ratio = median_of_ratios(inside, outside, options.seed);
  if (ratio.low >= 1 - options.tolerance && ratio.high <= 1 + options.tolerance) return;
  trace.flags.push_back(
      fmt::format("the sum over layers differs from steps without timers inside by {:+.1f} % (95 % interval "
                  "{:+.1f} to {:+.1f} %)",
                  100 * (ratio.middle - 1), 100 * (ratio.low - 1), 100 * (ratio.high - 1)));
}

void flag_medians(const CaptureOptions& options, Trace& trace) {
  const double ratio = step_time(trace) / median(trace.step_seconds);
  if (std::abs(ratio - 1) <= options.tolerance) return;
  trace.flags.push_back(fmt::format(
      "the sum of the layers' medians differs from the median step without timers inside by {:+.1f} %",
      100 * (ratio - 1)));
}

PassSamples& samples_of(LayerTrace& layer, Pass pass) {
  switch (pass) {
    case Pass::forward:
      return layer.forward;
    case Pass::backward_data:
      return layer.backward_data;
    case Pass::backward_weights:
      return layer.backward_weights;
    case Pass::update:
      break;
  }
  return layer.update;
}

std::string today() {
  const auto now = std::chrono::time_point_cast<std::chrono::seconds>(std::chrono::system_clock::now());
  return fmt::format("{:%Y-%m-%d}", fmt::gmtime(now));
}

}  // namespace stepcast
