#include "models/layer_times/trace_text.hpp"

#include <fmt/format.h>

#include "models/layer_times/trace.hpp"

namespace stepcast {

const Keys& pass_keys() {
  static const Keys keys{
      {"seconds", "list of numbers", ">= 0", "required", "wall time of each timed step, in seconds"},
      {"cpu_seconds", "list of numbers", ">= 0", "none", "CPU time of the same steps, in seconds"}};
  return keys;
}

const Keys& host_keys() {
  static const Keys keys{{"forward", "number", "0 to 1e6", "0", "in the forward pass, in seconds"},
                         {"backward", "number", "0 to 1e6", "0", "in the backward pass, in seconds"},
                         {"update", "number", "0 to 1e6", "0", "in the optimizer's update, in seconds"}};
  return keys;
}

const Keys& layer_trace_keys() {
  static const Keys keys{
      {"name", "text", "", "required", "name of the layer, as in the network"},
      {"forward", "mapping", "", "no such pass", "times of the forward pass", pass_keys},
      {"backward_data", "mapping", "", "no such pass", "times of the gradient of the input", pass_keys},
      {"backward_weights", "mapping", "", "no such pass", "times of the gradient of the weights", pass_keys},
      {"update", "mapping", "", "no such pass", "times of the optimizer's update", pass_keys},
      {"host", "mapping", "", "not known", "time in which the host issues the layer's kernels", host_keys},
      {"notes", "text", "", "empty", "algorithms that the library chose, and their workspace"}};
  return keys;
}

const Keys& trace_keys() {
  static const Keys keys{
      {"name", "text", "", "required", "name of the trace"},
      {"kind", "name", "captured, derived", "required", "measured, or computed by the rule"},
      {"model", "text", "", "required", "name of the network"},
      {"batch", "integer", "1 to 1e9", "required", "samples of a step"},
      {"precision", "text", "", "required", "such as `f32`"},
      {"device", "text", "", "required", "device that was measured, or for which the times were derived"},
      {"library", "text", "", "empty", "kernel library and version"},
      {"threads", "integer", "1 to 100,000", "1", "threads of the kernels"},
      {"ranks", "integer", "1 to 100,000", "1",
       "ranks that were timed at the same time; divides the number of samples"},
      {"update_arrays", "number", "1 to 100", "5",
       "arrays of the parameters' size that `update` reads and writes: 5 for momentum in one kernel"},
      {"date", "text", "", "empty", "when the trace was made"},
      {"command", "text", "", "empty", "how the trace was made"},
      {"source", "text", "", "required", "how the times were obtained"},
      {"flags", "list of texts", "", "none",
       "reasons to doubt the trace; every result that uses the trace repeats them"},
      {"notes", "list of texts", "", "none", "other observations: clocks, temperature, workspace"},
      {"step_seconds", "list of numbers", ">= 0", "none",
       "wall time of steps that were run without timers, in seconds"},
      {"step_cpu_seconds", "list of numbers", ">= 0", "none", "CPU time of the same steps, in seconds"},
      {"graph_step_seconds", "list of numbers", ">= 0", "none",
       "GPU: time of steps that were replayed as one CUDA graph, in seconds"},
      {"layers", "list of mappings", "", "required", "times, in the order of the network's layers",
       layer_trace_keys}};
  return keys;
}

const Keys& byte_times_keys() {
  static const Keys keys{{"seconds_per_byte", "list of numbers", "0 to 1", "required",
                          "wall time per byte of fp32 gradient, in seconds"},
                         {"cpu_seconds_per_byte", "list of numbers", "0 to 1", "required",
                          "CPU time per byte of fp32 gradient, in seconds"}};
  return keys;
}

const Keys& codec_keys() {
  static const Keys keys{
      {"name", "name", "one_bit, fp16, top_k", "required", "the compression"},
      {"quantize", "mapping", "", "required", "times before a gradient is sent", byte_times_keys},
      {"restore", "mapping", "", "required", "times after a gradient has arrived", byte_times_keys}};
  return keys;
}

const Keys& compression_file_keys() {
  static const Keys keys{
      {"name", "text", "", "required", "name of the file"},
      {"device", "text", "", "required", "the processor"},
      {"threads", "integer", "1 to 4096", "required", "threads of the kernels"},
      {"date", "text", "", "required", "when the file was made"},
      {"command", "text", "", "required", "command that made the file"},
      {"source", "text", "", "required", "how the times were obtained"},
      {"gradient_bytes", "number", ">= 1", "required", "size of the measured gradient, in bytes"},
      {"rows", "integer", ">= 1", "required", "`one_bit`: elements of a column"},
      {"density", "number", "0 to 1", "required", "`top_k`: share of the elements"},
      {"copy", "mapping", "", "required", "times of a plain copy", byte_times_keys},
      {"codecs", "list of mappings", "", "required", "times of `one_bit`, `fp16` and `top_k`, each once",
       codec_keys}};
  return keys;
}

namespace {

std::string escaped(char c) {
  if (c == '"' || c == '\\') return std::string("\\") + c;
  if (c == '\n') return "\\n";
  if (c == '\t') return "\\t";
  return std::string(1, c);
}

}  // namespace

std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) result += escaped(c);
  return result + "\"";
}

std::string numbers(const std::vector<double>& values) {
  std::string result = "[";
  for (const double value : values) result += fmt::format("{}{:.6g}", result.size() > 1 ? ", " : "", value);
  return result + "]";
}

namespace {

std::string text_line(const char* key, const std::string& text) {
  return text.empty() ? "" : fmt::format("{}: {}\n", key, quoted(text));
}

std::string lines(const char* key, const std::vector<std::string>& texts) {
  if (texts.empty()) return "";
  std::string result = fmt::format("{}:\n", key);
  for (const std::string& text : texts) result += fmt::format("  - {}\n", quoted(text));
  return result;
}

std::string step_line(const char* key, const std::vector<double>& values) {
  return values.empty() ? "" : fmt::format("{}: {}\n", key, numbers(values));
}

std::string pass_line(const char* key, const PassSamples& pass) {
  if (pass.seconds.empty()) return "";
  const std::string cpu =
      pass.cpu_seconds.empty() ? "" : fmt::format(", cpu_seconds: {}", numbers(pass.cpu_seconds));
  return fmt::format("    {}: {{seconds: {}{}}}\n", key, numbers(pass.seconds), cpu);
}

std::string host_line(const HostSeconds& host) {
  if (host.forward == 0 && host.backward == 0 && host.update == 0) return "";
  return fmt::format("    host: {{forward: {:.6g}, backward: {:.6g}, update: {:.6g}}}\n", host.forward,
                     host.backward, host.update);
}

std::string layer_lines(const LayerTrace& layer) {
  return fmt::format("  - name: {}\n", quoted(layer.name)) + pass_line("forward", layer.forward) +
         pass_line("backward_data", layer.backward_data) +
         pass_line("backward_weights", layer.backward_weights) + pass_line("update", layer.update) +
         host_line(layer.host) +
         (layer.notes.empty() ? "" : fmt::format("    notes: {}\n", quoted(layer.notes)));
}

}  // namespace

std::string to_yaml(const Trace& trace) {
  std::string result = text_line("name", trace.name);
  result += fmt::format("kind: {}\n", trace.kind == Trace::Kind::captured ? "captured" : "derived");
  result += text_line("model", trace.model) + fmt::format("batch: {}\n", trace.batch);
  result += text_line("precision", trace.precision) + text_line("device", trace.device);
  result += text_line("library", trace.library) + fmt::format("threads: {}\n", trace.threads);
  if (trace.ranks > 1) result += fmt::format("ranks: {}\n", trace.ranks);
  if (trace.update_arrays != Trace{}.update_arrays)
    result += fmt::format("update_arrays: {:g}\n", trace.update_arrays);
  result += text_line("date", trace.date) + text_line("command", trace.command);
  result += text_line("source", trace.source) + lines("flags", trace.flags);
  result += lines("notes", trace.notes);
  result += step_line("step_seconds", trace.step_seconds);
  result += step_line("step_cpu_seconds", trace.step_cpu_seconds);
  result += step_line("graph_step_seconds", trace.graph_step_seconds);
  result += "layers:\n";
  for (const LayerTrace& layer : trace.layers) result += layer_lines(layer);
  return result;
}

}  // namespace stepcast
