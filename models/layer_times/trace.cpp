#include "models/layer_times/trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "core/error.hpp"
#include "core/fields.hpp"

namespace stepcast {
namespace {

void check_pass(const YamlMap& map, PassSamples& pass) {
  if (!pass.cpu_seconds.empty() && pass.cpu_seconds.size() != pass.seconds.size()) {
    map.value().refuse(fmt::format("expected as many cpu_seconds as seconds, got {} and {}",
                                   pass.cpu_seconds.size(), pass.seconds.size()));
  }
}

const Fields<PassSamples>& pass_fields() {
  static const Fields<PassSamples> fields{
      {field("seconds", &PassSamples::seconds, numbers(0), required("a list of seconds"),
             "wall time of each timed step, in seconds"),
       field("cpu_seconds", &PassSamples::cpu_seconds, numbers(0), "CPU time of the same steps, in seconds")},
      check_pass};
  return fields;
}

const Fields<HostSeconds>& host_fields() {
  static const Fields<HostSeconds> fields{
      field("forward", &HostSeconds::forward, number(0, 1e6), "in the forward pass, in seconds"),
      field("backward", &HostSeconds::backward, number(0, 1e6), "in the backward pass, in seconds"),
      field("update", &HostSeconds::update, number(0, 1e6), "in the optimizer's update, in seconds")};
  return fields;
}

const Fields<LayerTrace>& layer_trace_fields() {
  const Default none = otherwise("no such pass");
  static const Fields<LayerTrace> fields{
      field("name", &LayerTrace::name, text(), required("the layer's name"),
            "name of the layer, as in the network"),
      field("forward", &LayerTrace::forward, mapping<pass_fields>(), none, "times of the forward pass"),
      field("backward_data", &LayerTrace::backward_data, mapping<pass_fields>(), none,
            "times of the gradient of the input"),
      field("backward_weights", &LayerTrace::backward_weights, mapping<pass_fields>(), none,
            "times of the gradient of the weights"),
      field("update", &LayerTrace::update, mapping<pass_fields>(), none, "times of the optimizer's update"),
      field("host", &LayerTrace::host, mapping<host_fields>(), otherwise("not known"),
            "time in which the host issues the layer's kernels"),
      field("notes", &LayerTrace::notes, text(), otherwise("empty"),
            "algorithms that the library chose, and their workspace")};
  return fields;
}

const Fields<Trace>& trace_fields() {
  using Kind = Trace::Kind;
  const Default empty = otherwise("empty");
  static const Fields<Trace> fields{
      field("name", &Trace::name, text(), required("the trace's name"), "name of the trace"),
      field("kind", &Trace::kind, choice<Kind>({{"captured", Kind::captured}, {"derived", Kind::derived}}),
            required("captured or derived"), "measured, or computed by the rule"),
      field("model", &Trace::model, text(), required("the name of a model"), "name of the network"),
      field("batch", &Trace::batch, integer(1, 1'000'000'000), required("an integer >= 1"),
            "samples of a step"),
      field("precision", &Trace::precision, text(), required("such as f32"), "such as `f32`"),
      field("device", &Trace::device, text(), required("the name of a device"),
            "device that was measured, or for which the times were derived"),
      field("library", &Trace::library, text(), empty, "kernel library and version"),
      field("threads", &Trace::threads, integer(1, 100'000), "threads of the kernels"),
      field("ranks", &Trace::ranks, integer(1, 100'000),
            "ranks that were timed at the same time; divides the number of samples"),
      field("update_arrays", &Trace::update_arrays, number(1, 100),
            "arrays of the parameters' size that `update` reads and writes: 5 for momentum in one kernel"),
      field("date", &Trace::date, text(), empty, "when the trace was made"),
      field("command", &Trace::command, text(), empty, "how the trace was made"),
      field("source", &Trace::source, text(), required("how the times were obtained"),
            "how the times were obtained"),
      field("flags", &Trace::flags, text_list(),
            "reasons to doubt the trace; every result that uses the trace repeats them"),
      field("notes", &Trace::notes, text_list(), "other observations: clocks, temperature, workspace"),
      field("step_seconds", &Trace::step_seconds, numbers(0),
            "wall time of steps that were run without timers, in seconds"),
      field("step_cpu_seconds", &Trace::step_cpu_seconds, numbers(0),
            "CPU time of the same steps, in seconds"),
      field("graph_step_seconds", &Trace::graph_step_seconds, numbers(0),
            "GPU: time of steps that were replayed as one CUDA graph, in seconds"),
      field("layers", &Trace::layers, list_of<layer_trace_fields>(), required("a list of layers"),
            "times, in the order of the network's layers")};
  return fields;
}

/// All passes must have equally many samples, because entry i of each belongs to timed step i.
void check_counts(const YamlValue& value, const LayerTrace& layer, std::size_t& samples) {
  for (const PassSamples* pass : passes(layer)) {
    if (pass->seconds.empty()) continue;
    if (samples == 0) samples = pass->seconds.size();
    if (pass->seconds.size() == samples) continue;
    value.refuse(fmt::format("expected {} samples in every pass, as in the passes above, got {}", samples,
                             pass->seconds.size()));
  }
}

}  // namespace

const Keys& trace_keys() {
  return trace_fields().keys();
}

Trace read_trace(const YamlValue& value) {
  Trace trace;
  const YamlMap map = read_mapping(value, trace_fields(), trace);
  const YamlValue layers = map.at("layers");
  std::size_t samples = 0;
  const std::vector<YamlValue> list = layers.list();
  for (std::size_t i = 0; i < list.size(); ++i) check_counts(list[i], trace.layers[i], samples);
  if (samples == 0) layers.expected("at least one layer with a timed pass");
  if (samples % trace.ranks != 0)
    map.at("ranks").expected(fmt::format("a divisor of the {} samples", samples));
  return trace;
}

std::array<const PassSamples*, 4> passes(const LayerTrace& layer) {
  return {&layer.forward, &layer.backward_data, &layer.backward_weights, &layer.update};
}

std::size_t samples_in(const Trace& trace) {
  std::size_t count = 0;
  for (const LayerTrace& layer : trace.layers) {
    for (const PassSamples* pass : passes(layer)) count = std::max(count, pass->seconds.size());
  }
  return count;
}

Seconds median(const std::vector<double>& samples) {
  if (samples.empty()) return {0};
  std::vector<double> sorted = samples;
  std::sort(sorted.begin(), sorted.end());
  const std::size_t half = sorted.size() / 2;
  return {sorted.size() % 2 == 1 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2};
}

Seconds step_time(const Trace& trace) {
  Seconds sum;
  for (const LayerTrace& layer : trace.layers) {
    for (const PassSamples* pass : passes(layer)) sum += median(pass->seconds);
  }
  return sum;
}

void check_fits(const Trace& trace, const Model& model) {
  if (trace.layers.size() != model.layers.size()) {
    throw InputError(fmt::format("trace {}: expected the {} layers of model {}, got {}", trace.name,
                                 model.layers.size(), model.name, trace.layers.size()));
  }
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    if (trace.layers[i].name == model.layers[i].name) continue;
    throw InputError(fmt::format("trace {}: layers[{}]: expected layer \"{}\" of model {}, got \"{}\"",
                                 trace.name, i, model.layers[i].name, model.name, trace.layers[i].name));
  }
}

namespace {

void append(std::vector<double>& to, const std::vector<double>& from) {
  to.insert(to.end(), from.begin(), from.end());
}

void append(PassSamples& to, const PassSamples& from) {
  append(to.seconds, from.seconds);
  append(to.cpu_seconds, from.cpu_seconds);
}

}  // namespace

void join(Trace& trace, const Trace& other) {
  if (trace.layers.size() != other.layers.size())
    throw std::invalid_argument("only traces of the same network can be joined");
  trace.ranks += other.ranks;
  append(trace.step_seconds, other.step_seconds);
  append(trace.step_cpu_seconds, other.step_cpu_seconds);
  for (std::size_t i = 0; i < trace.layers.size(); ++i) {
    append(trace.layers[i].forward, other.layers[i].forward);
    append(trace.layers[i].backward_data, other.layers[i].backward_data);
    append(trace.layers[i].backward_weights, other.layers[i].backward_weights);
    append(trace.layers[i].update, other.layers[i].update);
  }
  for (const std::string& flag : other.flags) {
    if (std::find(trace.flags.begin(), trace.flags.end(), flag) == trace.flags.end())
      trace.flags.push_back(flag);
  }
}

namespace {

PassSamples scaled(PassSamples samples, double factor) {
  for (double& seconds : samples.seconds) seconds *= factor;
  for (double& seconds : samples.cpu_seconds) seconds *= factor;
  return samples;
}

PassSamples interpolated(const PassSamples& lower, const PassSamples& upper, double upper_share) {
  const double from = median(lower.seconds).value, to = median(upper.seconds).value;
  const double wanted = (1 - upper_share) * from + upper_share * to;
  if (to > 0) return scaled(upper, wanted / to);
  return from > 0 ? scaled(lower, wanted / from) : upper;
}

}  // namespace

BatchNeighbors batch_neighbors(const std::vector<const Trace*>& traces, std::int64_t batch) {
  if (traces.empty()) throw std::invalid_argument("batch_neighbors: expected at least one trace");
  const Trace *lower = nullptr, *upper = nullptr;
  for (const Trace* trace : traces) {
    if (trace->batch <= batch && (lower == nullptr || trace->batch > lower->batch)) lower = trace;
    if (trace->batch >= batch && (upper == nullptr || trace->batch < upper->batch)) upper = trace;
  }
  if (lower == nullptr) return {upper, upper};
  if (upper == nullptr || lower->batch == batch) return {lower, lower};
  return {lower, upper, static_cast<double>(batch - lower->batch) / (upper->batch - lower->batch)};
}

Trace interpolated_trace(const BatchNeighbors& neighbors, std::int64_t batch) {
  const Trace &lower = *neighbors.lower, &upper = *neighbors.upper;
  Trace trace = upper;
  if (!neighbors.between()) return trace;
  if (lower.layers.size() != upper.layers.size())
    throw InputError(fmt::format("traces {} and {}: expected the same layers", lower.name, upper.name));
  trace.name = fmt::format("{} and {}, interpolated", lower.name, upper.name);
  trace.batch = batch;
  trace.step_seconds.clear();
  trace.step_cpu_seconds.clear();
  trace.graph_step_seconds.clear();
  for (const std::string& flag : lower.flags) {
    if (std::find(trace.flags.begin(), trace.flags.end(), flag) == trace.flags.end())
      trace.flags.push_back(flag);
  }
  for (std::size_t i = 0; i < trace.layers.size(); ++i) {
    for (const auto pass : {&LayerTrace::forward, &LayerTrace::backward_data, &LayerTrace::backward_weights,
                            &LayerTrace::update})
      trace.layers[i].*pass =
          interpolated(lower.layers[i].*pass, upper.layers[i].*pass, neighbors.upper_share);
  }
  return trace;
}

}  // namespace stepcast
