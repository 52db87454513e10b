#include "strategies/plan/setting.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/expects.hpp"
#include "models/layer_times/trace.hpp"

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

LayerTimes times_of(const Trace& trace) {
  LayerTimes times;
  times.kind = trace.kind == Trace::Kind::captured ? "captured" : "derived";
  times.flags = trace.flags;
  times.ranks = trace.ranks;
  times.update_arrays = trace.update_arrays;
  for (const LayerTrace& layer : trace.layers) times.median.push_back(median_of(layer));
  times.host = host_times(trace);
  for (std::size_t i = 0; i < samples_in(trace); ++i) {
    times.samples.emplace_back();
    for (const LayerTrace& layer : trace.layers) times.samples.back().push_back(sample_of(layer, i));
  }
  return times;
}

/// Gives `times` new medians. Every sample keeps its ratio to the median.
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

/// A doubt about traces of different devices; empty if all are of one device.
std::vector<std::string> unlike_devices(const std::vector<const Trace*>& traces) {
  const auto unlike = [&](const Trace* one) { return one->device != traces.front()->device; };
  const auto other = std::find_if(traces.begin(), traces.end(), unlike);
  if (other == traces.end()) return {};
  return {"the traces listed are of unlike devices: " + traces.front()->device + " and " + (*other)->device};
}

}  // namespace

std::vector<LayerSeconds> host_times(const Trace& trace) {
  std::vector<LayerSeconds> times;
  bool any = false;
  for (const LayerTrace& layer : trace.layers) {
    times.push_back({layer.host.forward, layer.host.backward, layer.host.update});
    any = any || layer.host.forward > 0 || layer.host.backward > 0 || layer.host.update > 0;
  }
  return any ? times : std::vector<LayerSeconds>{};
}

LayerTimes layer_times(const Model& model, std::vector<const Trace*> traces, std::int64_t batch) {
  for (const Trace* trace : traces) check_fits(*trace, model);
  std::sort(traces.begin(), traces.end(), [](const Trace* a, const Trace* b) { return a->batch < b->batch; });
  const BatchNeighbors neighbors = batch_neighbors(traces, batch);
  LayerTimes times = times_of(interpolated_trace(neighbors, batch));
  for (const std::string& doubt : unlike_devices(traces)) times.flags.push_back(doubt);
  if (neighbors.between()) times.kind += ", interpolated";
  if (neighbors.between() || neighbors.upper->batch == batch) return times;

  std::vector<LayerSeconds> medians;
  const double factor = 1.0 * batch / neighbors.upper->batch;
  for (const LayerSeconds& layer : times.median) {
    medians.push_back({factor * layer.forward, factor * layer.backward, layer.update});
  }
  times.kind += ", scaled";
  rescale(times, medians);
  return times;
}

std::optional<Seconds> Setting::measured_time(const std::string& arithmetic) const {
  return measured.arithmetic ? measured.arithmetic(arithmetic) : std::nullopt;
}

std::int64_t samples_per_replica(const Setting& setting, int replicas, int micro_batches) {
  expects(replicas > 0 && micro_batches > 0, "replicas that work");
  std::int64_t samples = setting.trace_batch * micro_batches;
  if (setting.batch_per_worker) samples = setting.batch_per_worker->integer(1, 1'000'000'000);
  if (setting.global_batch) {
    samples = setting.global_batch->integer(1, 1'000'000'000);
    if (samples % replicas != 0) {
      setting.global_batch->refuse(
          fmt::format("{} samples cannot be shared evenly by {} workers", samples, replicas));
    }
    samples /= replicas;
  }
  if (samples % micro_batches != 0) {
    const auto& asked = setting.batch_per_worker ? setting.batch_per_worker : setting.global_batch;
    asked->refuse(fmt::format("a batch of {} for each worker is not a multiple of {} micro-batches", samples,
                              micro_batches));
  }
  return samples;
}

}  // namespace stepcast
