#include "gpu/capture/trace_folder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "core/error.hpp"
#include "core/yaml.hpp"

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

}  // namespace stepcast
