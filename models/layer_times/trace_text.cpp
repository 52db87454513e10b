#include "models/layer_times/trace_text.hpp"

#include <fmt/format.h>

namespace stepcast {

namespace {

std::string text_line(const char* key, const std::string& text) {
  return text.empty() ? "" : fmt::format("{}: {}\n", key, yaml_quoted(text));
}

std::string lines(const char* key, const std::vector<std::string>& texts) {
  if (texts.empty()) return "";
  std::string result = fmt::format("{}:\n", key);
  for (const std::string& text : texts) result += fmt::format("  - {}\n", yaml_quoted(text));
  return result;
}

std::string step_line(const char* key, const std::vector<double>& values) {
  return values.empty() ? "" : fmt::format("{}: {}\n", key, yaml_numbers(values));
}

std::string pass_line(const char* key, const PassSamples& pass) {
  if (pass.seconds.empty()) return "";
  const std::string cpu =
      pass.cpu_seconds.empty() ? "" : fmt::format(", cpu_seconds: {}", yaml_numbers(pass.cpu_seconds));
  return fmt::format("    {}: {{seconds: {}{}}}\n", key, yaml_numbers(pass.seconds), cpu);
}

std::string host_line(const HostSeconds& host) {
  if (host.forward == 0 && host.backward == 0 && host.update == 0) return "";
  return fmt::format("    host: {{forward: {:.6g}, backward: {:.6g}, update: {:.6g}}}\n", host.forward,
                     host.backward, host.update);
}

std::string layer_lines(const LayerTrace& layer) {
  return fmt::format("  - name: {}\n", yaml_quoted(layer.name)) + pass_line("forward", layer.forward) +
         pass_line("backward_data", layer.backward_data) +
         pass_line("backward_weights", layer.backward_weights) + pass_line("update", layer.update) +
         host_line(layer.host) +
         (layer.notes.empty() ? "" : fmt::format("    notes: {}\n", yaml_quoted(layer.notes)));
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
