#include "gpu/capture/step_forecast.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.hpp"
#include "models/layer_times/interpolated_trace.hpp"
#include "models/partition/halo.hpp"
#include "models/partition/partition_times.hpp"
#include "models/partition/spatial_partition.hpp"
#include "strategies/plan/setting.hpp"

namespace stepcast {
namespace {

std::vector<const Trace*> pointers_to(const std::vector<Trace>& traces) {
  std::vector<const Trace*> pointers;
  for (const Trace& trace : traces) pointers.push_back(&trace);
  return pointers;
}

/// A forecast without times. @throws InputError for a batch size outside the captured ones
StepForecast begin_forecast(const std::vector<Trace>& traces, std::int64_t batch) {
  const auto [least, most] = std::minmax_element(
      traces.begin(), traces.end(), [](const Trace& a, const Trace& b) { return a.batch < b.batch; });
  if (batch < least->batch || batch > most->batch) {
    throw InputError(
        fmt::format("--batch: expected {} to {}, the range of batch sizes captured for {}, got {}",
                    least->batch, most->batch, traces[0].model, batch));
  }
  const BatchNeighbors neighbors = batch_neighbors(pointers_to(traces), batch);
  return {{}, {}, neighbors.lower->batch, neighbors.upper->batch};
}

}  // namespace

StepForecast forecast_step(const Model& model, const std::vector<Trace>& traces, std::int64_t batch) {
  StepForecast forecast = begin_forecast(traces, batch);
  LayerTimes times = layer_times(model, pointers_to(traces), batch);
  for (const LayerSeconds& layer : times.median) {
    forecast.step += Seconds{layer.forward + layer.backward + layer.update};
    forecast.update += Seconds{layer.update};
  }
  forecast.flags = std::move(times.flags);
  return forecast;
}

StepForecast forecast_part_step(const Model& model, const std::vector<Trace>& traces, const Parts& parts,
                                const Device& device, std::int64_t batch) {
  const SpatialPartition partition{parts, first_mixing_layer(model)};
  if (const std::string problem = spatial_problem(model, partition); !problem.empty())
    throw InputError(fmt::format("--parts {}: {}", fmt::join(parts, ","), problem));
  StepForecast forecast = begin_forecast(traces, batch);
  const Model part = largest_spatial_part(model, partition);
  const int devices = device_count(parts);
  PartModel computed{&part, {}};
  for (std::size_t layer = 0; layer < part.layers.size(); ++layer)
    computed.batch.push_back(partition.splits(layer) ? batch : (batch + devices - 1) / devices);
  Trace times = part_trace(model, pointers_to(traces), computed, device);
  forecast.step = step_time(times);
  for (const LayerTrace& layer : times.layers) forecast.update += median(layer.update.seconds);
  forecast.flags = std::move(times.flags);
  return forecast;
}

}  // namespace stepcast
