#include "validate/validation.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.hpp"
#include "strategies/shared_strategies.hpp"

namespace stepcast {
namespace {

/// Whether setting `path` can change what stands at `key`: one holds the other.
bool touches(const std::string& path, const std::string& key) {
  const std::string a = path + ".", b = key + ".";
  return a.starts_with(b) || b.starts_with(a);
}

/// The value of a point, else of the file, of a key.
YamlNode value_at(const Scenario& scenario, const Point& point, const std::string& key) {
  YamlNode document = scenario.document;
  for (const auto* values : {&scenario.settings, &point.values}) {
    for (const Assignment& one : *values) {
      if (touches(one.path, key)) assign(document, one);
    }
  }
  const YamlNode* found = find_path(document, key);
  return found == nullptr ? YamlNode() : *found;
}

std::int64_t count_at(const Scenario& scenario, const Point& point, const char* key, std::int64_t otherwise) {
  const YamlNode value = value_at(scenario, point, key);
  return value.kind == YamlNode::Kind::nothing ? otherwise : YamlValue(value, key).integer(0, 1 << 20);
}

/// Ranks that a point's servers take.
int servers_of(const Scenario& scenario, const Point& point) {
  if (value_at(scenario, point, "strategy.server").text != "own_device") return 0;
  return static_cast<int>(count_at(scenario, point, "strategy.shards", 1) +
                          count_at(scenario, point, "strategy.sub_masters", 0));
}

constexpr std::int64_t kMostCopies = 16;  // by then no cache holds anything of the first

Need need_of(const Scenario& scenario, const Point& point) {
  const YamlNode model = value_at(scenario, point, "model");
  if (model.kind != YamlNode::Kind::scalar)
    YamlValue(scenario.document, "").refuse("validate needs model: a name or a file");
  const std::string kind = value_at(scenario, point, "strategy.kind").text;
  Need need{model.text, samples_of_pass(scenario, point)};
  need.exchanges = kind != "model_averaging" && kind != "bmuf" && kind != "diloco" && kind != "pipeline";
  const YamlNode times = value_at(scenario, point, "strategy.micro_batches");
  if (times.kind == YamlNode::Kind::scalar) {
    const std::int64_t micro_batches = YamlValue(times, "strategy.micro_batches").integer(1, 1'000'000);
    need.accumulates = micro_batches > 1;
    need.copies = static_cast<int>(std::min(micro_batches, kMostCopies));
  }
  return need;
}

/// The keys that say how a network is cut, in words fit for a file's name.
std::string cut_words(const Scenario& scenario, const Point& point) {
  const std::string kind = value_at(scenario, point, "strategy.kind").text;
  if (kind != "spatial" && kind != "tensor") return "";
  std::string words = kind == "spatial" ? "cut" : kind;
  for (const char* key : {"split", "whole_from", "batch_norm", "ways"}) {
    const YamlNode value = value_at(scenario, point, std::string("strategy.") + key);
    if (!value.text.empty()) words += "-" + value.text;
    for (const YamlNode& item : value.items) words += "-" + item.text;
  }
  return words;
}

}  // namespace

std::int64_t samples_of_pass(const Scenario& scenario, const Point& point) {
  const YamlNode batch = value_at(scenario, point, "batch_per_worker");
  if (batch.kind != YamlNode::Kind::scalar)
    YamlValue(scenario.document, "").refuse("this command needs batch_per_worker: what its kernels work on");
  const std::int64_t samples = YamlValue(batch, "batch_per_worker").integer(1, 1 << 20);
  YamlNode times = value_at(scenario, point, "strategy.accumulation");
  if (times.kind != YamlNode::Kind::scalar) times = value_at(scenario, point, "strategy.micro_batches");
  if (times.kind != YamlNode::Kind::scalar) return samples;
  const YamlValue micro_batches(times, "strategy: micro-batches");
  const std::int64_t count = micro_batches.integer(1, 1'000'000);
  if (samples % count != 0)
    micro_batches.refuse(
        fmt::format("batch_per_worker {} cannot be cut into {} equal micro-batches", samples, count));
  return samples / count;
}

bool compresses_gradients(const Scenario& scenario, const Point& point) {
  const std::string compression = value_at(scenario, point, "strategy.compression").text;
  return !compression.empty() && compression != "none";
}

Validation read_validation(const ValidationOptions& options, int ranks) {
  std::vector<Assignment> settings;
  for (const std::string& text : options.settings) settings.push_back(parse_assignment(text));
  Validation validation;
  validation.scenario = read_scenario(options.scenario, settings);
  Scenario& scenario = validation.scenario;
  for (std::size_t i = 0; i < scenario.points.size(); ++i) {
    const YamlNode workers = value_at(scenario, scenario.points[i], "workers");
    if (workers.kind == YamlNode::Kind::nothing) {
      const int left = ranks - servers_of(scenario, scenario.points[i]);
      if (left < 1) {
        throw InputError(fmt::format("{}: the servers of point {} leave no worker of --ranks {}",
                                     options.scenario, scenario.points[i].name, ranks));
      }
      scenario.points[i].values.push_back(parse_assignment("workers=" + std::to_string(left)));
    } else if (YamlValue(workers, "workers").integer(1) > ranks) {
      throw InputError(fmt::format("{}: point {} has {} workers, more than --ranks {}", options.scenario,
                                   scenario.points[i].name, workers.text, ranks));
    }
    validation.points.push_back(i);
    validation.needs.push_back(need_of(scenario, scenario.points[i]));
    validation.compresses.push_back(compresses_gradients(scenario, scenario.points[i]));
    // Ranks that sleep have no kernels to time at the shapes of a part: there the rule for parts counts.
    validation.cuts.push_back(options.sleep ? "" : cut_words(scenario, scenario.points[i]));
  }
  return validation;
}

std::filesystem::path trace_file(const std::filesystem::path& folder, const Need& need) {
  const std::string name = std::filesystem::path(need.model).stem().string();
  return folder / fmt::format("{}-b{}{}{}.yaml", name, need.batch, need.exchanges ? "" : "-local",
                              need.accumulates ? fmt::format("-sums-{}", need.copies) : "");
}

std::filesystem::path cut_trace_file(const std::filesystem::path& folder, const Need& need,
                                     const std::string& cut) {
  return folder / (trace_file(folder, need).stem().string() + "-" + cut + ".yaml");
}

std::filesystem::path compression_file(const std::filesystem::path& folder, const std::string& model) {
  return folder / fmt::format("{}-compression.yaml", std::filesystem::path(model).stem().string());
}

std::filesystem::path platform_file(const std::filesystem::path& folder) {
  return folder / "platform.yaml";
}

std::filesystem::path host_platform_file(const std::filesystem::path& folder) {
  return folder / "platform-host.yaml";
}

Experiment measured_experiment(const Validation& validation, std::size_t index,
                               const std::filesystem::path& folder, const std::vector<Assignment>& more,
                               Library& library) {
  const Scenario& scenario = validation.scenario;
  std::vector<Assignment> values = scenario.settings;
  const auto& own = scenario.points[validation.points[index]].values;
  values.insert(values.end(), own.begin(), own.end());
  values.push_back(parse_assignment("trace=" + trace_file(folder, validation.needs[index]).string()));
  const bool by_host = validation.compresses[index] && std::filesystem::exists(host_platform_file(folder));
  const auto platform = by_host ? host_platform_file(folder) : platform_file(folder);
  values.push_back(parse_assignment("platform=" + platform.string()));
  if (validation.compresses[index]) {
    const auto file = compression_file(folder, validation.needs[index].model);
    values.push_back(parse_assignment("compression_times=" + file.string()));
  }
  if (const std::string& cut = validation.cuts[index]; !cut.empty()) {
    const auto file = cut_trace_file(folder, validation.needs[index], cut);
    if (std::filesystem::exists(file))  // else the plan will say why its part has none
      values.push_back(parse_assignment("strategy.cut_trace=" + file.string()));
  }
  values.insert(values.end(), more.begin(), more.end());
  return build_experiment(scenario.document, values, library);
}

NetworkSharing cut_of(const Validation& validation, std::size_t index, const Model& model, int ranks) {
  const Point& point = validation.scenario.points[validation.points[index]];
  const YamlNode strategy = value_at(validation.scenario, point, "strategy");
  const YamlValue options(strategy, "strategy");
  const std::int64_t batch = validation.needs[index].batch;
  if (value_at(validation.scenario, point, "strategy.kind").text == "tensor")
    return tensor_sharing(options, model, batch);
  return spatial_sharing(options, model, ranks, batch);
}

}  // namespace stepcast
