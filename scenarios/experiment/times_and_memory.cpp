#include "scenarios/experiment/times_and_memory.hpp"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>

#include "core/error.hpp"
#include "core/fields.hpp"
#include "models/layer_times/compression_times.hpp"
#include "models/layer_times/derived_trace.hpp"
#include "platforms/topology.hpp"
#include "scenarios/keys/scenario_keys.hpp"
#include "scenarios/reader/read_faults.hpp"

namespace stepcast {
namespace {

const Fields<PassCounts>& pass_fields() {
  const Form<double> count = number(0, 1e6);
  constexpr auto kMeaning = "how often a step runs this pass; it need not be whole";
  static const Fields<PassCounts> fields{
      field<PassCounts>({"layers", KeyType::text, "required",
                         "name of a layer, with `*` for any text; a name that no layer matches is an error"}),
      field("forward", &PassCounts::forward, count, kMeaning),
      field("backward_data", &PassCounts::backward_data, count, kMeaning),
      field("backward_weights", &PassCounts::backward_weights, count, kMeaning),
      field("update", &PassCounts::update, count, kMeaning)};
  return fields;
}

void multiply(PassSamples& pass, double count) {
  for (double& seconds : pass.seconds) seconds *= count;
  for (double& seconds : pass.cpu_seconds) seconds *= count;
}

}  // namespace

const Keys& passes_keys() {
  return pass_fields().keys();
}

std::vector<PassCounts> read_passes(const YamlValue& value, const Model& model) {
  std::vector<PassCounts> counts(model.layers.size());
  for (const YamlValue& row : value.list()) {
    PassCounts passes;
    const YamlMap map = read_mapping(row, pass_fields(), passes);
    const YamlValue layers = map.at("layers", "names of layers, such as \"conv*\"");
    bool any = false;
    for (std::size_t i = 0; i < counts.size(); ++i) {
      if (fnmatch(layers.text().c_str(), model.layers[i].name.c_str(), 0) != 0) continue;
      counts[i] = passes;
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

/// `memory:` as written.
struct MemoryKeys {
  MemoryOptions::Framework framework = MemoryOptions::Framework::pytorch;
  std::optional<MemoryOptions::OptimizerState> optimizer;
  std::optional<bool> in_place;
  bool free_error_signals = false;
  std::optional<MemoryOptions::Attention> attention;
  std::optional<KernelChoice::Gelu> gelu;
  bool keep_logits = true, fp32_logits = false, softmax_input = false, gradient_as_bucket_view = false;
  std::optional<Bytes> workspace;
};

/// Refuses keys that only some frameworks have.
void check_memory(const YamlMap& map, MemoryKeys& keys) {
  using Framework = MemoryOptions::Framework;
  const auto refuse = [&map](std::initializer_list<const char*> names, const char* why) {
    for (const char* name : names)
      if (const auto given = map.maybe(name)) given->refuse(why);
  };
  const bool lbann = keys.framework == Framework::lbann;
  if (!lbann)
    refuse({"free_error_signals"}, "only valid with framework: lbann; the others always free error signals");
  if (lbann) refuse({"attention"}, "not valid with framework: lbann, which holds the scores");
  if (lbann) refuse({"gelu"}, "not valid with framework: lbann, which holds every output");
  if (keys.framework != Framework::pytorch)
    refuse({"gradient_as_bucket_view", "keep_logits", "fp32_logits", "softmax_input"},
           "only valid with framework: pytorch");
}

const Fields<MemoryKeys>& memory_fields() {
  using State = MemoryOptions::OptimizerState;
  static const Fields<MemoryKeys> fields{
      {field("framework", &MemoryKeys::framework,
             choice<MemoryOptions::Framework>({{"pytorch", MemoryOptions::Framework::pytorch},
                                               {"tensorflow", MemoryOptions::Framework::tensorflow},
                                               {"lbann", MemoryOptions::Framework::lbann}}),
             "framework whose rule counts activations and error signals"),
       field("optimizer", &MemoryKeys::optimizer,
             choice<State>({{"sgd", State::sgd},
                            {"momentum", State::momentum},
                            {"adagrad", State::adagrad},
                            {"rmsprop", State::rmsprop},
                            {"adam", State::adam},
                            {"adamw", State::adamw}}),
             otherwise("that of `kernels`"), "optimizer whose state is counted; it has no effect on time"),
       field("in_place", &MemoryKeys::in_place, boolean(), otherwise("`true`; `lbann`: `false`"),
             "whether activations overwrite their inputs where this is possible"),
       field("free_error_signals", &MemoryKeys::free_error_signals, boolean(),
             "whether error signals are freed after use; only `lbann`, because the other frameworks always "
             "free them"),
       field("attention", &MemoryKeys::attention,
             choice<MemoryOptions::Attention>(
                 {{"eager", MemoryOptions::Attention::eager}, {"flash", MemoryOptions::Attention::flash}}),
             otherwise("that of `kernels`"),
             "whether memory holds the scores of attention (`eager`) or not (`flash`); not valid with "
             "`lbann`"),
       field("gelu", &MemoryKeys::gelu, choice(gelu_words()), otherwise("that of `kernels`"),
             "whether memory holds what each operator of a GELU saves that is written out; not valid with "
             "`lbann`"),
       field("keep_logits", &MemoryKeys::keep_logits, boolean(),
             "whether the program holds the input of softmax with cross entropy to the end of the step; only "
             "`pytorch`"),
       field("fp32_logits", &MemoryKeys::fp32_logits, boolean(),
             "whether the program casts that input to fp32 in mixed precision; only `pytorch`"),
       field("softmax_input", &MemoryKeys::softmax_input, boolean(),
             "whether softmax saves its input as well, as PyTorch before 1.11 does; only `pytorch`"),
       field("gradient_as_bucket_view", &MemoryKeys::gradient_as_bucket_view, boolean(),
             "whether the buckets of `synchronous` share the gradients' memory; only `pytorch`"),
       field("workspace", &MemoryKeys::workspace, bytes(), otherwise("by rule; `lbann`: `0 B`"),
             "workspace of the kernel library")},
      check_memory};
  return fields;
}

/// What a scenario without `memory` counts, by PyTorch's rule.
MemoryOptions usual_memory(const KernelChoice& kernels) {
  MemoryOptions memory;
  memory.optimizer = optimizer_of(kernels);
  if (is_flash(kernels.attention)) memory.attention = MemoryOptions::Attention::flash;
  memory.gelu = kernels.gelu;
  memory.elementwise = kernels.elementwise;
  memory.gradient_sums = kernels.gradient_sums;
  memory.cross_entropy = kernels.cross_entropy;
  memory.framework = MemoryOptions::Framework::pytorch;
  memory.bucket_copies = true;
  memory.activations = MemoryOptions::Activations::in_place;
  memory.error_signals = MemoryOptions::ErrorSignals::freed;
  return memory;
}

}  // namespace

const Keys& memory_keys() {
  return memory_fields().keys();
}

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
  MemoryOptions memory = usual_memory(kernels);
  if (!value) return memory;
  MemoryKeys keys;
  read_mapping(*value, memory_fields(), keys);
  const bool lbann = keys.framework == MemoryOptions::Framework::lbann;
  memory.framework = keys.framework;
  memory.bucket_copies = keys.framework == MemoryOptions::Framework::pytorch && !keys.gradient_as_bucket_view;
  memory.activations = keys.in_place.value_or(!lbann) ? MemoryOptions::Activations::in_place
                                                      : MemoryOptions::Activations::out_of_place;
  if (lbann && !keys.free_error_signals) memory.error_signals = MemoryOptions::ErrorSignals::kept;
  if (lbann) memory.attention = MemoryOptions::Attention::eager;
  memory.attention = keys.attention.value_or(memory.attention);
  memory.optimizer = keys.optimizer.value_or(memory.optimizer);
  memory.gelu = keys.gelu.value_or(memory.gelu);
  memory.keep_logits = keys.keep_logits;
  memory.fp32_logits = keys.fp32_logits;
  memory.softmax_input = keys.softmax_input;
  memory.workspace = keys.workspace;
  return memory;
}

namespace {

/// An entry of `background:` without its links.
struct Background {
  double share = 0;
};

const Fields<Background>& background_fields() {
  static const Fields<Background> fields{
      field<Background>({"links", KeyType::text, "required",
                         "name of a link, with `*` for any text, `?` for any letter and `[...]` for one of "
                         "several letters"}),
      field("share", &Background::share, number(0, 0.99), required("a number from 0 to 0.99"),
            "share of the bandwidth that other jobs use")};
  return fields;
}

}  // namespace

const Keys& background_keys() {
  return background_fields().keys();
}

void read_background(const YamlValue& value, const Platform& platform, LinkBandwidths& bandwidths) {
  const Topology topology(platform);
  for (const YamlValue& item : value.list()) {
    Background other;
    const YamlMap map = read_mapping(item, background_fields(), other);
    const YamlValue names = map.at("links", "link names, such as \"leaf 0 *\"");
    for (const int link : read_link_names(names, topology)) bandwidths.multiply(link, 1 - other.share);
  }
}

}  // namespace stepcast
