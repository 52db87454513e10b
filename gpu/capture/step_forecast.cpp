#include "gpu/capture/step_forecast.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "core/error.hpp"
#include "core/yaml.hpp"
#include "models/layer_times/trace.hpp"
#include "models/partition/partition_times.hpp"
#include "models/partition/spatial_partition.hpp"
#include "strategies/plan/setting.hpp"

namespace stepcast {
namespace {

/// Traces of a folder with the given precision and layout, which the end of their file names tells
/// (trace_name), sorted by file name.
std::vector<Trace> traces_ending_in(const TraceChoice& choice) {
  std::error_code error;
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(choice.folder, error)) {
    const std::string end = fmt::format("-{}-{}-gpu", choice.precision, choice.layout);
    if (entry.path().extension() == ".yaml" && entry.path().stem().string().ends_with(end)) {
      files.push_back(entry.path());
    }
  }
  if (error) throw InputError(fmt::format("{}: cannot read: {}", choice.folder.string(), error.message()));
  std::sort(files.begin(), files.end());
  std::vector<Trace> traces;
  for (const auto& file : files) {
    const YamlNode node = read_yaml(file);
    traces.push_back(read_trace(YamlValue(node, "")));
  }
  return traces;
}

}  // namespace

std::vector<Trace> read_traces(const TraceChoice& choice) {
  std::vector<Trace> traces = traces_ending_in(choice);
  std::erase_if(traces, [&](const Trace& trace) { return trace.model != choice.model; });
  if (traces.empty()) {
    throw InputError(fmt::format("{}: no capture of {} with precision {} and layout {}",
                                 choice.folder.string(), choice.model, choice.precision, choice.layout));
  }
  for (const Trace& trace : traces) {
    if (trace.device == traces[0].device) continue;
    throw InputError(
        fmt::format("traces {} and {} are from different devices, {} and {}; keep captures of each device in "
                    "a folder of its own",
                    traces[0].name, trace.name, traces[0].device, trace.device));
  }
  return traces;
}

std::vector<std::string> models_in(const TraceChoice& choice) {
  std::map<std::string, int> count;
  for (const Trace& trace : traces_ending_in(choice)) ++count[trace.model];
  std::vector<std::string> models;
  for (const auto& [model, traces] : count) {
    if (traces >= 2) models.push_back(model);
  }
  return models;
}

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
