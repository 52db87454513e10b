#include "kernels/trace_yaml.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <iterator>
#include <vector>

namespace stepcast {
namespace {

/// A double-quoted YAML scalar.
std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    if (c == '\n') {
      result += "\\n";
    } else {
      result += c;
    }
  }
  return result + '"';
}

std::string list(const std::vector<double>& values) {
  std::vector<std::string> words;
  for (const double value : values) words.push_back(fmt::format("{:.6g}", value));
  return fmt::format("[{}]", fmt::join(words, ", "));
}

std::string list(const std::vector<std::string>& texts) {
  std::vector<std::string> words;
  for (const std::string& text : texts) words.push_back(quoted(text));
  return fmt::format("[{}]", fmt::join(words, ", "));
}

void append_pass(const char* name, const PassSamples& pass, std::string& text) {
  if (pass.seconds.empty()) return;
  text += fmt::format("    {}: {{seconds: {}", name, list(pass.seconds));
  if (!pass.cpu_seconds.empty()) text += fmt::format(", cpu_seconds: {}", list(pass.cpu_seconds));
  text += "}\n";
}

void append_optional(const char* key, const std::string& value, std::string& text) {
  if (!value.empty()) text += fmt::format("{}: {}\n", key, quoted(value));
}

void append_origin(const Trace& trace, std::string& text) {
  text += fmt::format("name: {}\n", quoted(trace.name));
  text += fmt::format("kind: {}\n", trace.kind == Trace::Kind::captured ? "captured" : "derived");
  text += fmt::format("model: {}\nbatch: {}\nprecision: {}\n", quoted(trace.model), trace.batch,
                      quoted(trace.precision));
  append_optional("device", trace.device, text);
  append_optional("library", trace.library, text);
  text += fmt::format("threads: {}\n", trace.threads);
  append_optional("date", trace.date, text);
  append_optional("command", trace.command, text);
  append_optional("source", trace.source, text);
  text += fmt::format("flags: {}\n", list(trace.flags));
}

}  // namespace

std::string trace_yaml(const Trace& trace) {
  std::string text;
  append_origin(trace, text);
  text += fmt::format("step_seconds: {}\n", list(trace.step_seconds));
  text += fmt::format("step_cpu_seconds: {}\n", list(trace.step_cpu_seconds));
  text += "layers:\n";
  for (const LayerTrace& layer : trace.layers) {
    text += fmt::format("  - name: {}\n", quoted(layer.name));
    append_pass("forward", layer.forward, text);
    append_pass("backward_data", layer.backward_data, text);
    append_pass("backward_weights", layer.backward_weights, text);
    append_pass("update", layer.update, text);
  }
  return text;
}

}  // namespace stepcast
