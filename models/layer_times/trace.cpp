#include "models/layer_times/trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "core/error.hpp"

namespace stepcast {
namespace {

std::vector<double> read_times(const YamlMap& yaml, std::string_view key) {
  std::vector<double> times;
  const auto value = yaml.maybe(key);
  if (!value) return times;
  for (const YamlValue& time : value->list()) times.push_back(time.number(0));
  return times;
}

PassSamples read_pass(const YamlMap& layer, std::string_view key) {
  PassSamples pass;
  const auto value = layer.maybe(key);
  if (!value) return pass;
  const YamlMap yaml = read_map(*value, pass_keys());
  yaml.at("seconds", "a list of seconds");
  pass.seconds = read_times(yaml, "seconds");
  pass.cpu_seconds = read_times(yaml, "cpu_seconds");
  if (!pass.cpu_seconds.empty() && pass.cpu_seconds.size() != pass.seconds.size()) {
    value->refuse(fmt::format("expected as many cpu_seconds as seconds, got {} and {}",
                              pass.cpu_seconds.size(), pass.seconds.size()));
  }
  return pass;
}

HostSeconds read_host(const YamlMap& layer) {
  HostSeconds host;
  const auto value = layer.maybe("host");
  if (!value) return host;
  const YamlMap yaml = read_map(*value, host_keys());
  for (const auto& [key, pass] : {std::pair{"forward", &HostSeconds::forward},
                                  {"backward", &HostSeconds::backward},
                                  {"update", &HostSeconds::update}}) {
    if (const auto seconds = yaml.maybe(key)) host.*pass = seconds->number(0, 1e6);
  }
  return host;
}

std::string optional_text(const YamlMap& yaml, std::string_view key) {
  const auto value = yaml.maybe(key);
  return value ? value->text() : std::string();
}

LayerTrace read_layer_trace(const YamlValue& value) {
  const YamlMap yaml = read_map(value, layer_trace_keys());
  return {.name = yaml.at("name", "the layer's name").text(),
          .forward = read_pass(yaml, "forward"),
          .backward_data = read_pass(yaml, "backward_data"),
          .backward_weights = read_pass(yaml, "backward_weights"),
          .update = read_pass(yaml, "update"),
          .notes = optional_text(yaml, "notes"),
          .host = read_host(yaml)};
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

void read_origin(const YamlMap& yaml, Trace& trace) {
  trace.name = yaml.at("name", "the trace's name").text();
  trace.kind = yaml.at("kind", "captured or derived").one_of({"captured", "derived"}) == 0
                   ? Trace::Kind::captured
                   : Trace::Kind::derived;
  trace.model = yaml.at("model", "the name of a model").text();
  trace.batch = yaml.at("batch", "an integer >= 1").integer(1, 1'000'000'000);
  trace.precision = yaml.at("precision", "such as f32").text();
  trace.device = yaml.at("device", "the name of a device").text();
  trace.library = optional_text(yaml, "library");
  if (const auto threads = yaml.maybe("threads"))
    trace.threads = static_cast<int>(threads->integer(1, 100'000));
  if (const auto arrays = yaml.maybe("update_arrays")) trace.update_arrays = arrays->number(1, 100);
  trace.date = optional_text(yaml, "date");
  trace.command = optional_text(yaml, "command");
  trace.source = yaml.at("source", "how the times were obtained").text();
  if (const auto flags = yaml.maybe("flags")) {
    for (const YamlValue& flag : flags->list()) trace.flags.push_back(flag.text());
  }
  if (const auto notes = yaml.maybe("notes")) {
    for (const YamlValue& note : notes->list()) trace.notes.push_back(note.text());
  }
}

}  // namespace

Trace read_trace(const YamlValue& value) {
  const YamlMap yaml = read_map(value, trace_keys());
  Trace trace;
  read_origin(yaml, trace);
  trace.step_seconds = read_times(yaml, "step_seconds");
  trace.step_cpu_seconds = read_times(yaml, "step_cpu_seconds");
  trace.graph_step_seconds = read_times(yaml, "graph_step_seconds");
  const YamlValue layers = yaml.at("layers", "a list of layers");
  std::size_t samples = 0;
  for (const YamlValue& layer : layers.list()) {
    trace.layers.push_back(read_layer_trace(layer));
    check_counts(layer, trace.layers.back(), samples);
  }
  if (samples == 0) layers.expected("at least one layer with a timed pass");
  if (const auto ranks = yaml.maybe("ranks")) {
    trace.ranks = static_cast<int>(ranks->integer(1, 100'000));
    if (samples % static_cast<std::size_t>(trace.ranks) != 0)
      ranks->expected(fmt::format("a divisor of the {} samples", samples));
  }
  return trace;
}

std::array<const PassSamples*, 4> passes(const LayerTrace& layer) {
  return {&layer.forward, &layer.backward_data, &layer.backward_weights, &layer.update};
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
  return {lower, upper,
          static_cast<double>(batch - lower->batch) / static_cast<double>(upper->batch - lower->batch)};
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
