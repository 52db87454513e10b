#include "scenarios/read_setting.hpp"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <cmath>

#include "models/compression_beside.hpp"
#include "models/derive.hpp"
#include "platforms/topology.hpp"

namespace stepcast {
namespace {

bool is_derived(const YamlValue& trace) {
  return trace.is(YamlNode::Kind::scalar) && trace.text() == "derived";
}

std::vector<YamlValue> trace_names(const YamlValue& trace) {
  auto names = trace.is(YamlNode::Kind::scalar) ? std::vector<YamlValue>{trace} : trace.list();
  if (names.empty()) trace.expected("at least one trace");
  return names;
}

}  // namespace

std::function<LayerTimes(std::int64_t)> read_times(const YamlValue& trace, const Model& model,
                                                   const Device& device, Library& library,
                                                   const std::vector<PassCounts>& passes) {
  if (is_derived(trace)) {
    return [&, passes](std::int64_t batch) {
      const Trace derived =
          repeated(derive(model, batch, device, library.calibration(device), {nullptr, 1}), passes);
      return layer_times(model, {&derived}, batch);
    };
  }
  auto traces = std::make_shared<std::vector<Trace>>();
  for (const YamlValue& name : trace_names(trace)) {
    traces->push_back(repeated(library.trace(name), passes));
    if (traces->back().model != model.name)
      name.refuse(fmt::format("is a trace of {}, not of {}", traces->back().model, model.name));
  }
  return [traces, &model](std::int64_t batch) {
    std::vector<const Trace*> all;
    for (const Trace& one : *traces) all.push_back(&one);
    return layer_times(model, std::move(all), batch);
  };
}

std::function<Trace(const PartModel&)> read_part_traces(const YamlValue& trace, const Model& model,
                                                        const Device& device, Library& library) {
  if (is_derived(trace)) {
    return [&](const PartModel& part) {
      const std::int64_t batch = *std::max_element(part.batch.begin(), part.batch.end());
      const Trace whole = derive(model, batch, device, library.calibration(device), {nullptr, 1});
      return part_trace(model, whole, part, device);
    };
  }
  std::vector<const Trace*> traces;
  for (const YamlValue& name : trace_names(trace)) traces.push_back(&library.trace(name));
  return [traces, &model, &device](const PartModel& part) {
    const double batch = static_cast<double>(*std::max_element(part.batch.begin(), part.batch.end()));
    const auto distance = [batch](const Trace* one) {
      return std::abs(std::log(static_cast<double>(one->batch) / batch));
    };
    const auto nearest = std::min_element(traces.begin(), traces.end(), [&](const Trace* a, const Trace* b) {
      return distance(a) < distance(b);
    });
    return part_trace(model, **nearest, part, device);
  };
}

std::function<CompressionTimes(Compression)> read_compression_times(const std::optional<YamlValue>& name,
                                                                    const Device& device, Library& library) {
  return [&, name](Compression kind) -> CompressionTimes {
    const CompressionTrace& trace = library.compression(name);
    // Measured as it is done: by the processor itself, or by one beside a device.
    if (device.is_processor() || is_beside_device(trace)) return {cost_of(trace, kind), trace.rows, ""};
    return {derived_cost(trace, kind, device), trace.rows,
            fmt::format("times of compression are derived for {} from {}", device.name, trace.device)};
  };
}

std::function<CompressionTimes(Compression)> read_host_compression_times(const std::optional<YamlValue>& name,
                                                                         Library& library) {
  return [&, name](Compression kind) -> CompressionTimes {
    const CompressionTrace& trace = library.compression(name);
    return {cost_of(trace, kind), trace.rows, ""};
  };
}

std::int64_t trace_batch(const YamlValue& trace, Library& library) {
  return is_derived(trace) ? 1 : library.trace(trace_names(trace).front()).batch;
}

MemoryOptions read_memory(const YamlValue& value) {
  const YamlMap keys = value.map({"optimizer", "in_place", "free_error_signals", "workspace"});
  MemoryOptions memory;
  if (const auto named = keys.maybe("optimizer")) {
    memory.optimizer = static_cast<MemoryOptions::Optimizer>(
        named->one_of({"sgd", "momentum", "adagrad", "rmsprop", "adam"}));
  }
  if (const auto yes = keys.maybe("in_place"); yes && yes->boolean())
    memory.activations = MemoryOptions::Activations::in_place;
  if (const auto yes = keys.maybe("free_error_signals"); yes && yes->boolean())
    memory.error_signals = MemoryOptions::ErrorSignals::freed;
  if (const auto space = keys.maybe("workspace")) memory.workspace = space->bytes();
  return memory;
}

void read_background(const YamlValue& value, const Platform& platform, LinkBandwidths& bandwidths) {
  const Topology topology(platform);
  for (const YamlValue& item : value.list()) {
    const YamlMap map = item.map({"links", "share"});
    const std::string pattern = map.at("links", "link names, such as \"leaf 0 *\"").text();
    const double share = map.at("share", "a number from 0 to 0.99").number(0, 0.99);
    bool any = false;
    for (int link = 0; link < topology.link_count(); ++link) {
      if (fnmatch(pattern.c_str(), topology.link_name(link).c_str(), 0) != 0) continue;
      bandwidths.multiply(link, 1 - share);
      any = true;
    }
    if (!any)
      map.at("links").expected(
          fmt::format("names of links, such as \"{}\" (* stands for anything)", topology.link_name(0)));
  }
}

}  // namespace stepcast
