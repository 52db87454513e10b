#include "strategies/layer_times.hpp"

#include <algorithm>

#include "models/trace_times.hpp"

namespace stepcast {
namespace {

double at(const std::vector<double>& samples, std::size_t i) {
  return samples.empty() ? 0 : samples[i % samples.size()];
}

LayerSeconds median_of(const LayerTrace& layer) {
  return {median(layer.forward.seconds).value,
          median(layer.backward_data.seconds).value + median(layer.backward_weights.seconds).value,
          median(layer.update.seconds).value};
}

LayerSeconds sample_of(const LayerTrace& layer, std::size_t i) {
  return {at(layer.forward.seconds, i),
          at(layer.backward_data.seconds, i) + at(layer.backward_weights.seconds, i),
          at(layer.update.seconds, i)};
}

/// Steps in which every pass was measured.
std::size_t samples_in(const Trace& trace) {
  std::size_t count = 0;
  for (const LayerTrace& layer : trace.layers) {
    for (const PassSamples* pass : passes(layer)) count = std::max(count, pass->seconds.size());
  }
  return count;
}

LayerTimes times_of(const Trace& trace) {
  LayerTimes times;
  times.kind = trace.kind == Trace::Kind::captured ? "captured" : "derived";
  times.flags = trace.flags;
  times.ranks = trace.ranks;
  for (const LayerTrace& layer : trace.layers) times.median.push_back(median_of(layer));
  for (std::size_t i = 0; i < samples_in(trace); ++i) {
    times.samples.emplace_back();
    for (const LayerTrace& layer : trace.layers) times.samples.back().push_back(sample_of(layer, i));
  }
  return times;
}

LayerSeconds combined(const LayerSeconds& a, double weight_a, const LayerSeconds& b, double weight_b) {
  return {weight_a * a.forward + weight_b * b.forward, weight_a * a.backward + weight_b * b.backward,
          weight_a * a.update + weight_b * b.update};
}

/// The noise of `times` on new medians: every sample keeps its ratio to the median.
void rescale(LayerTimes& times, const std::vector<LayerSeconds>& medians) {
  const auto ratio = [](double to, double from) { return from > 0 ? to / from : 0; };
  for (auto& sample : times.samples) {
    for (std::size_t i = 0; i < sample.size(); ++i) {
      const LayerSeconds &to = medians[i], &from = times.median[i];
      sample[i] = {sample[i].forward * ratio(to.forward, from.forward),
                   sample[i].backward * ratio(to.backward, from.backward),
                   sample[i].update * ratio(to.update, from.update)};
    }
  }
  times.median = medians;
}

/// A doubt where a batch is set against another that was measured elsewhere; else nothing.
std::vector<std::string> unlike_devices(const std::vector<const Trace*>& traces) {
  const auto unlike = [&](const Trace* one) { return one->device != traces.front()->device; };
  const auto other = std::find_if(traces.begin(), traces.end(), unlike);
  if (other == traces.end()) return {};
  return {"the traces listed are of unlike devices: " + traces.front()->device + " and " + (*other)->device};
}

}  // namespace

LayerTimes layer_times(const Model& model, std::vector<const Trace*> traces, std::int64_t batch) {
  for (const Trace* trace : traces) check_fits(*trace, model);
  std::sort(traces.begin(), traces.end(), [](const Trace* a, const Trace* b) { return a->batch < b->batch; });
  const auto above =
      std::find_if(traces.begin(), traces.end(), [&](const Trace* t) { return t->batch >= batch; });
  const Trace& upper = above == traces.end() ? *traces.back() : **above;
  LayerTimes times = times_of(upper);
  for (const std::string& doubt : unlike_devices(traces)) times.flags.push_back(doubt);
  if (upper.batch == batch) return times;

  std::vector<LayerSeconds> medians;
  if (above == traces.begin() || above == traces.end()) {
    const double factor = static_cast<double>(batch) / static_cast<double>(upper.batch);
    for (const LayerSeconds& layer : times.median) {
      medians.push_back({factor * layer.forward, factor * layer.backward, layer.update});
    }
    times.kind += ", scaled";
  } else {
    const LayerTimes lower = times_of(**(above - 1));
    for (const std::string& flag : lower.flags) {
      if (std::find(times.flags.begin(), times.flags.end(), flag) == times.flags.end())
        times.flags.push_back(flag);
    }
    const double from = static_cast<double>((*(above - 1))->batch), to = static_cast<double>(upper.batch);
    const double share = (static_cast<double>(batch) - from) / (to - from);
    for (std::size_t i = 0; i < times.median.size(); ++i) {
      medians.push_back(combined(lower.median[i], 1 - share, times.median[i], share));
    }
    times.kind += ", interpolated";
  }
  rescale(times, medians);
  return times;
}

}  // namespace stepcast
