#include "scenarios/experiment/read_setting.hpp"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>

#include "core/error.hpp"
#include "models/layer_times/compression_times.hpp"
#include "models/layer_times/derived_trace.hpp"
#include "platforms/topology.hpp"
#include "scenarios/keys/scenario_keys.hpp"
#include "scenarios/reader/read_campaign.hpp"

namespace stepcast {
namespace {

PassCounts read_counts(const YamlMap& map) {
  PassCounts counts;
  const auto read = [&](const char* key, double& into) {
    if (const auto value = map.maybe(key)) into = value->number(0, 1e6);
  };
  read("forward", counts.forward);
  read("backward_data", counts.backward_data);
  read("backward_weights", counts.backward_weights);
  read("update", counts.update);
  return counts;
}

void multiply(PassSamples& pass, double count) {
  for (double& seconds : pass.seconds) seconds *= count;
  for (double& seconds : pass.cpu_seconds) seconds *= count;
}

}  // namespace

std::vector<PassCounts> read_passes(const YamlValue& value, const Model& model) {
  std::vector<PassCounts> counts(model.layers.size());
  for (const YamlValue& row : value.list()) {
    const YamlMap map = read_map(row, passes_keys());
    const YamlValue layers = map.at("layers", "names of layers, such as \"conv*\"");
    bool any = false;
    for (std::size_t i = 0; i < counts.size(); ++i) {
      if (fnmatch(layers.text().c_str(), model.layers[i].name.c_str(), 0) != 0) continue;
      counts[i] = read_counts(map);
      any = true;
    }
    if (!any) layers.expected("names of layers of " + model.name);
  }
  return counts;
}

Trace repeated(Trace trace, const std::vector<PassCounts>& counts) {
  for (std::size_t i = 0; i < counts.size() && i < trace.layers.size(); ++i) {
    LayerTrace& layer = trace.layers[i];
    multiply(layer.forward, counts[i].forward);
    multiply(layer.backward_data, counts[i].backward_data);
    multiply(layer.backward_weights, counts[i].backward_weights);
    multiply(layer.update, counts[i].update);
    layer.host.forward *= counts[i].forward;
    layer.host.backward *= (counts[i].backward_data + counts[i].backward_weights) / 2;
    layer.host.update *= counts[i].update;
  }
  return trace;
}

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
      name.refuse(
          fmt::format("expected a trace of model {}, got one of {}", model.name, traces->back().model));
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
      const Device used = with_available_softmax(device, *part.model, batch);
      const Trace whole = derive(model, batch, used, library.calibration(device), {nullptr, 1});
      const Model padded = with_padded_vocabulary(model, *part.model);
      return part_trace(model, whole, {&padded, part.batch}, used);
    };
  }
  std::vector<const Trace*> traces;
  for (const YamlValue& name : trace_names(trace)) traces.push_back(&library.trace(name));
  return [traces, &model, &device](const PartModel& part) { return part_trace(model, traces, part, device); };
}

std::function<CompressionTimes(Compression)> read_compression_times(const std::optional<YamlValue>& name,
                                                                    const Device& device, Library& library) {
  return [&, name](Compression kind) -> CompressionTimes {
    const CompressionTrace& trace = library.compression(name);
    // The measured times hold on a CPU, and for a CPU that compresses for the device of its machine.
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

namespace {

MemoryOptions::OptimizerState optimizer_of(const KernelChoice& kernels) {
  using Kind = KernelChoice::UpdateRule;
  if (kernels.optimizer == Kind::sgd) return MemoryOptions::OptimizerState::sgd;
  if (kernels.optimizer == Kind::adam) return MemoryOptions::OptimizerState::adam;
  return kernels.optimizer == Kind::adamw ? MemoryOptions::OptimizerState::adamw
                                          : MemoryOptions::OptimizerState::momentum;
}

/// Keys that only some frameworks have. @throws InputError if another framework is named
void read_framework_keys(const YamlMap& keys, MemoryOptions& memory) {
  using Framework = MemoryOptions::Framework;
  const bool lbann = memory.framework == Framework::lbann;
  if (const auto yes = keys.maybe("free_error_signals")) {
    if (!lbann) yes->refuse("only valid with framework: lbann; the others always free error signals");
    if (yes->boolean()) memory.error_signals = MemoryOptions::ErrorSignals::freed;
  }
  if (const auto kernel = keys.maybe("attention")) {
    if (lbann) kernel->refuse("not valid with framework: lbann, which holds the scores");
    memory.attention = static_cast<MemoryOptions::Attention>(kernel->one_of({"eager", "flash"}));
  }
  if (const auto kernel = keys.maybe("gelu")) {
    if (lbann) kernel->refuse("not valid with framework: lbann, which holds every output");
    memory.gelu = static_cast<KernelChoice::Gelu>(kernel->one_of(gelu_names()));
  }
  if (const auto view = keys.maybe("gradient_as_bucket_view")) {
    if (memory.framework != Framework::pytorch) view->refuse("only valid with framework: pytorch");
    memory.bucket_copies = !view->boolean();
  }
  const std::pair<const char*, bool MemoryOptions::*> flags[] = {
      {"keep_logits", &MemoryOptions::keep_logits},
      {"fp32_logits", &MemoryOptions::fp32_logits},
      {"softmax_input", &MemoryOptions::softmax_input}};
  for (const auto& [key, member] : flags) {
    const auto yes = keys.maybe(key);
    if (!yes) continue;
    if (memory.framework != Framework::pytorch) yes->refuse("only valid with framework: pytorch");
    memory.*member = yes->boolean();
  }
}

}  // namespace

Device read_kernels(const YamlValue& value, const YamlValue& trace, const Device& device) {
  const KernelChoice choice = read_kernel_choice(value);
  if (!is_derived(trace))
    value.refuse("only valid with trace: derived, because a captured trace has the kernels that ran");
  try {
    return with_kernels(device, choice);
  } catch (const InputError& error) {
    value.refuse(error.what());
  }
}

MemoryOptions read_memory(const std::optional<YamlValue>& value, const KernelChoice& kernels) {
  using Framework = MemoryOptions::Framework;
  MemoryOptions memory;
  memory.optimizer = optimizer_of(kernels);
  if (kernels.attention == KernelChoice::Attention::flash) memory.attention = MemoryOptions::Attention::flash;
  memory.gelu = kernels.gelu;
  memory.elementwise = kernels.elementwise;
  memory.fused_cross_entropy = kernels.cross_entropy == KernelChoice::CrossEntropy::fused;
  memory.framework = Framework::pytorch;
  memory.bucket_copies = true;
  memory.activations = MemoryOptions::Activations::in_place;
  memory.error_signals = MemoryOptions::ErrorSignals::freed;
  if (!value) return memory;
  const YamlMap keys = read_map(*value, memory_keys());
  if (const auto named = keys.maybe("framework")) {
    memory.framework = static_cast<Framework>(named->one_of({"pytorch", "tensorflow", "lbann"}));
  }
  if (memory.framework != Framework::pytorch) memory.bucket_copies = false;
  if (memory.framework == Framework::lbann) {
    memory.attention = MemoryOptions::Attention::eager;
    memory.activations = MemoryOptions::Activations::out_of_place;
    memory.error_signals = MemoryOptions::ErrorSignals::kept;
  }
  if (const auto named = keys.maybe("optimizer")) {
    memory.optimizer = static_cast<MemoryOptions::OptimizerState>(
        named->one_of({"sgd", "momentum", "adagrad", "rmsprop", "adam", "adamw"}));
  }
  if (const auto yes = keys.maybe("in_place")) {
    memory.activations =
        yes->boolean() ? MemoryOptions::Activations::in_place : MemoryOptions::Activations::out_of_place;
  }
  read_framework_keys(keys, memory);
  if (const auto space = keys.maybe("workspace")) memory.workspace = space->bytes();
  return memory;
}

void read_background(const YamlValue& value, const Platform& platform, LinkBandwidths& bandwidths) {
  const Topology topology(platform);
  for (const YamlValue& item : value.list()) {
    const YamlMap map = read_map(item, background_keys());
    const YamlValue names = map.at("links", "link names, such as \"leaf 0 *\"");
    const double share = map.at("share", "a number from 0 to 0.99").number(0, 0.99);
    for (const int link : read_link_names(names, topology)) bandwidths.multiply(link, 1 - share);
  }
}

}  // namespace stepcast
