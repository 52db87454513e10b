#include "runtime/scenario_points/validation_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/error.hpp"
#include "kernels/network/layer_table.hpp"
#include "strategies/model_parallel/group_plan.hpp"

namespace stepcast {

namespace {

/// True if setting `path` can change the value of `key`, because one is a part of the other.
bool touches(const std::string& path, const std::string& key) {
  const std::string a = path + ".", b = key + ".";
  return a.starts_with(b) || b.starts_with(a);
}

/// The value of a key at a point: the point's, else the scenario file's.
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

constexpr std::int64_t kMaxCopies = 16;  // after that many, no cache holds anything of the first

NetworkVariant variant_of(const Scenario& scenario, const Point& point) {
  const YamlNode model = value_at(scenario, point, "model");
  if (model.kind != YamlNode::Kind::scalar)
    YamlValue(scenario.document, "")
        .refuse("model: expected the name of a model or a file, which real runs need; got none");
  const std::string kind = value_at(scenario, point, "strategy.kind").text;
  NetworkVariant variant{model.text, samples_of_pass(scenario, point)};
  variant.exchanges = kind != "model_averaging" && kind != "bmuf" && kind != "diloco" && kind != "pipeline";
  const YamlNode times = value_at(scenario, point, "strategy.micro_batches");
  if (times.kind == YamlNode::Kind::scalar) {
    const std::int64_t micro_batches = YamlValue(times, "strategy.micro_batches").integer(1, 1'000'000);
    variant.accumulates = micro_batches > 1;
    variant.copies = static_cast<int>(std::min(micro_batches, kMaxCopies));
  }
  return variant;
}

/// The keys that partition a network, as text for a file name; empty: no partition.
std::string partition_name(const Scenario& scenario, const Point& point) {
  const std::string kind = value_at(scenario, point, "strategy.kind").text;
  if (kind != "spatial" && kind != "tensor" && kind != "filter_parallel") return "";
  std::string words = kind;
  for (const char* key : {"split", "whole_from", "batch_norm", "ways"}) {
    const YamlNode value = value_at(scenario, point, std::string("strategy.") + key);
    if (!value.text.empty()) words += "-" + value.text;
    for (const YamlNode& item : value.items) words += "-" + item.text;
  }
  const bool separate =
      kind == "spatial" && value_at(scenario, point, "strategy.halo_overlap").text != "false";
  return separate ? words + "-overlap" : words;
}

}  // namespace

std::int64_t samples_of_pass(const Scenario& scenario, const Point& point) {
  const YamlNode batch = value_at(scenario, point, "batch_per_worker");
  if (batch.kind != YamlNode::Kind::scalar)
    YamlValue(scenario.document, "")
        .refuse("this command needs batch_per_worker, the samples of one step of a worker");
  const std::int64_t samples = YamlValue(batch, "batch_per_worker").integer(1, 1 << 20);
  YamlNode times = value_at(scenario, point, "strategy.accumulation");
  if (times.kind != YamlNode::Kind::scalar) times = value_at(scenario, point, "strategy.micro_batches");
  if (times.kind != YamlNode::Kind::scalar) return samples;
  const YamlValue micro_batches(times, "strategy: micro-batches");
  const std::int64_t count = micro_batches.integer(1, 1'000'000);
  if (samples % count != 0)
    micro_batches.refuse(
        fmt::format("batch_per_worker {} cannot be split into {} equal micro-batches", samples, count));
  return samples / count;
}

bool compresses_gradients(const Scenario& scenario, const Point& point) {
  const std::string compression = value_at(scenario, point, "strategy.compression").text;
  return !compression.empty() && compression != "none";
}

std::string strategy_value(const Validation& validation, std::size_t index, const std::string& key) {
  const Point& point = validation.point(index);
  return value_at(validation.scenario, point, "strategy." + key).text;
}

namespace {

/// Refuses a network that ranks cannot compute before anything is measured.
void check_kernels(const Scenario& scenario, const Point& point, Library& library) {
  const YamlNode name = value_at(scenario, point, "model");
  if (name.kind != YamlNode::Kind::scalar) return;
  const YamlValue value(name, "model");
  const std::string why = lacking_kernel(library.model(value));
  if (!why.empty()) value.refuse(why);
}

}  // namespace

Validation read_validation(const ValidationOptions& options, int ranks) {
  Validation validation;
  Library library;
  validation.scenario = read_scenario(options.scenario, parse_assignments(options.settings));
  Scenario& scenario = validation.scenario;
  for (std::size_t i = 0; i < scenario.points.size(); ++i) {
    if (options.point >= 0 && i != static_cast<std::size_t>(options.point)) continue;
    const YamlNode workers = value_at(scenario, scenario.points[i], "workers");
    if (workers.kind == YamlNode::Kind::nothing) {
      const int left = ranks - servers_of(scenario, scenario.points[i]);
      if (left < 1) {
        throw InputError(fmt::format(
            "{}: the servers of point {} take all of --ranks {}; give more ranks, at least one for a worker",
            options.scenario, scenario.points[i].name, ranks));
      }
      scenario.points[i].values.push_back(parse_assignment("workers=" + std::to_string(left)));
    } else if (YamlValue(workers, "workers").integer(1) > ranks) {
      throw InputError(fmt::format("{}: point {} has {} workers, more than --ranks {}", options.scenario,
                                   scenario.points[i].name, workers.text, ranks));
    }
    validation.points.push_back(i);
    validation.variants.push_back(variant_of(scenario, scenario.points[i]));
    validation.loads.push_back(value_at(scenario, scenario.points[i], "data").kind ==
                               YamlNode::Kind::mapping);
    validation.compresses.push_back(compresses_gradients(scenario, scenario.points[i]));
    // Ranks that sleep have no kernels to time at the shapes of a shard, so the forecast estimates the
    // shard's trace.
    validation.partitions.push_back(options.sleep ? "" : partition_name(scenario, scenario.points[i]));
    if (!options.sleep) check_kernels(scenario, scenario.points[i], library);
  }
  return validation;
}

std::filesystem::path trace_file(const std::filesystem::path& folder, const NetworkVariant& variant) {
  const std::string name = std::filesystem::path(variant.model).stem().string();
  return folder / fmt::format("{}-b{}{}{}.yaml", name, variant.batch, variant.exchanges ? "" : "-local",
                              variant.accumulates ? fmt::format("-sums-{}", variant.copies) : "");
}

std::filesystem::path shard_trace_file(const std::filesystem::path& folder, const NetworkVariant& variant,
                                       const std::string& partition) {
  return folder / (trace_file(folder, variant).stem().string() + "-" + partition + ".yaml");
}

std::filesystem::path compression_file(const std::filesystem::path& folder, const std::string& model) {
  return folder / fmt::format("{}-compression.yaml", std::filesystem::path(model).stem().string());
}

std::filesystem::path links_file(const std::filesystem::path& folder) {
  return folder / "links.jsonl";
}

std::filesystem::path platform_file(const std::filesystem::path& folder) {
  return folder / "platform.yaml";
}

std::filesystem::path host_platform_file(const std::filesystem::path& folder) {
  return folder / "platform-host.yaml";
}

bool measured_before(const ValidationOptions& options, const std::filesystem::path& file) {
  return options.point >= 0 && std::filesystem::exists(file);
}

Experiment measured_experiment(const Validation& validation, std::size_t index,
                               const std::filesystem::path& folder, const std::vector<Assignment>& more,
                               Library& library) {
  const Scenario& scenario = validation.scenario;
  std::vector<Assignment> values = scenario.settings;
  const auto& own = validation.point(index).values;
  values.insert(values.end(), own.begin(), own.end());
  values.push_back(parse_assignment("trace=" + trace_file(folder, validation.variants[index]).string()));
  const bool by_host = validation.compresses[index] && std::filesystem::exists(host_platform_file(folder));
  const auto platform = by_host ? host_platform_file(folder) : platform_file(folder);
  values.push_back(parse_assignment("platform=" + platform.string()));
  if (validation.compresses[index]) {
    const auto file = compression_file(folder, validation.variants[index].model);
    values.push_back(parse_assignment("compression_times=" + file.string()));
  }
  if (const std::string& partition = validation.partitions[index]; !partition.empty()) {
    const auto file = shard_trace_file(folder, validation.variants[index], partition);
    if (std::filesystem::exists(file))  // otherwise the plan reports why the shard has no trace
      values.push_back(parse_assignment("strategy.part_trace=" + file.string()));
  }
  values.insert(values.end(), more.begin(), more.end());
  return build_experiment(scenario.document, values, library);
}

ModelPartition partition_of_point(const Validation& validation, std::size_t index, const Model& model,
                                  int ranks) {
  const Point& point = validation.point(index);
  const YamlNode strategy = value_at(validation.scenario, point, "strategy");
  const YamlValue options(strategy, "strategy");
  const std::int64_t batch = validation.variants[index].batch;
  const std::string kind = value_at(validation.scenario, point, "strategy.kind").text;
  if (kind == "tensor") return tensor_partition(options, model, batch);
  if (kind == "filter_parallel") return filter_partition(options, model, batch);
  return spatial_partition(options, model, ranks, batch);
}

namespace {

/// Compressed gradients are summed by compressed_all_reduce_rounds, which sends the messages of a ring. Other
/// algorithms would quantize again at every hop.
std::string unsupported_compressed_sum(const Plan& plan, const Collective& sum) {
  const bool ring = communicator_of(plan, sum).all_reduce.algorithm == Algorithm::ring;
  if (ring || sum.kind != Collective::Kind::all_reduce || plan.workers == 1) return {};
  return "compressed gradients need all_reduce: ring in a real run";
}

}  // namespace

std::string unsupported_in_real_run(const Plan& plan, int ranks, bool any_partition) {
  if (static_cast<int>(plan.endpoints.size()) > ranks) {
    return fmt::format("it needs {} ranks, servers included; give --ranks {}", plan.endpoints.size(),
                       plan.endpoints.size());
  }
  const ModelPartition& partition = plan.partition;
  if (!any_partition && !partition.simulated_only.empty())
    return "simulated only: " + partition.simulated_only;
  if (plan.workloads.size() != 1) return "ranks with different parts of the network are simulated only";
  if (!plan.simulated_only.empty()) return plan.simulated_only;
  for (const Communicator& one : plan.communicators) {
    if (one.streams > 1) return "communicators with several streams are simulated only";
  }
  for (const Collective& one : plan.collectives) {
    if (one.buffer.codec.kind != Compression::none) {
      const std::string why = unsupported_compressed_sum(plan, one);
      if (!why.empty()) return why;
      continue;
    }
    const double elements = static_cast<double>(one.buffer.elements.size());
    const double sent = (one.by_group ? communicator_of(plan, one).groups() : 1) * one.buffer.size.value;
    if (elements > 0 && std::abs(sent - 4 * elements) > 0.01 * 4 * elements)
      return "gradients of other than 4 bytes per element (precision: mixed) are simulated only";
    const bool between_layers =
        one.buffer.array == Array::statistics || one.buffer.array == Array::activations;
    if (between_layers && partition.form == ModelPartition::Form::none) {
      return "exchanging activations or statistics is simulated only";
    }
  }
  return {};
}

std::string unsupported_noise(const Noise& noise, bool sleep) {
  if (sleep && noise.jitter == Noise::Jitter::trace)
    return "noise.jitter: ranks with --sleep cannot replay measured steps; give none, lognormal or layers";
  const bool drawn = noise.jitter == Noise::Jitter::lognormal || noise.jitter == Noise::Jitter::layers;
  if (!sleep && (drawn || noise.has_stragglers()))
    return "noise: random noise needs --sleep, because ranks that compute have noise of their own; leave "
           "noise out or "
           "give noise.jitter: trace";
  return {};
}

}  // namespace stepcast
