#include "runtime/scenario_points/validation_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/error.hpp"
#include "kernels/network/layer_table.hpp"
#include "scenarios/reader/library.hpp"

namespace stepcast {

namespace {

constexpr int kMaxCopies = 16;  // after that many, no cache holds anything of the first

NetworkVariant variant_of(const Experiment& experiment, const Strategy& strategy) {
  const Plan& plan = experiment.plan;
  NetworkVariant variant{experiment.model_name.text, plan.samples_of_pass};
  variant.exchanges = strategy.exchanges_every_step;
  if (plan.partition.form == ModelPartition::Form::stages) {
    variant.accumulates = plan.partition.micro_batches > 1;
    variant.copies = std::min(plan.partition.micro_batches, kMaxCopies);
  }
  return variant;
}

std::string tokens_name(const ModelPartition& partition) {
  const TokenDivision& tokens = partition.tokens;
  const char* exchange = tokens.exchange == ContextExchange::all_gather ? "keys" : "heads";
  return fmt::format("tensor-{}{}{}", partition.ways, tokens.by_tensor ? "-tokens" : "",
                     tokens.context > 1 ? fmt::format("-context-{}-{}", tokens.context, exchange) : "");
}

/// The partition of a network, as text for a file name; empty: no partition.
std::string partition_name(const ModelPartition& partition) {
  using Form = ModelPartition::Form;
  if (partition.form == Form::blocks) return fmt::format("tensor-{}", partition.ways);
  if (partition.form == Form::filters) return fmt::format("filter_parallel-{}", partition.ways);
  const SpatialPartition& spatial = partition.spatial;
  if (partition.form == Form::slices || partition.form == Form::machines)
    return fmt::format("model_parallel-{}{}", partition.ways, spatial.separate_border ? "-overlap" : "");
  if (partition.form == Form::stages && partition.tokens.any()) return tokens_name(partition);
  if (partition.form != Form::positions) return "";
  return fmt::format("spatial-{}-whole-{}-statistics-{}{}", fmt::join(spatial.parts, "-"), spatial.whole_from,
                     partition.statistics_over, spatial.separate_border ? "-overlap" : "");
}

/// The values that the scenario gives a point.
std::vector<Assignment> values_of(const Validation& validation, std::size_t index) {
  std::vector<Assignment> values = validation.scenario.settings;
  const std::vector<Assignment>& own = validation.point(index).values;
  values.insert(values.end(), own.begin(), own.end());
  return values;
}

Experiment build(const Validation& validation, std::size_t index, Overrides overrides, Library& library) {
  overrides.ranks = validation.ranks;
  return build_experiment(validation.scenario.document, values_of(validation, index), library, overrides);
}

/// Refuses a network that ranks cannot capture, before anything is measured.
void check_network(const Validation& validation, const Experiment& experiment, bool sleep) {
  if (experiment.model_name.kind != YamlNode::Kind::scalar)
    YamlValue(validation.scenario.document, "")
        .refuse("model: expected the name of a model or a file, which real runs need; got none");
  const std::string why = sleep ? "" : lacking_kernel(experiment.model);
  if (!why.empty()) YamlValue(experiment.model_name, "model").refuse(why);
}

}  // namespace

Experiment unmeasured_experiment(const Validation& validation, std::size_t index, const YamlNode& platform,
                                 Overrides last, Library& library) {
  last.platform = platform;
  last.trace = "derived";
  last.compression_times = "cpu";
  return build(validation, index, std::move(last), library);
}

Validation read_validation(const ValidationOptions& options, int ranks, const YamlNode& platform) {
  Validation validation{.scenario = read_scenario(options.scenario, parse_assignments(options.settings)),
                        .ranks = ranks};
  Library library;
  for (std::size_t i = 0; i < validation.scenario.points.size(); ++i) {
    if (options.point >= 0 && std::cmp_not_equal(i, options.point)) continue;
    validation.points.push_back(i);
    const std::size_t index = validation.unmeasured.size();
    validation.unmeasured.push_back(unmeasured_experiment(validation, index, platform, {}, library));
    const Experiment& experiment = validation.unmeasured.back();
    check_network(validation, experiment, options.sleep);
    validation.variants.push_back(variant_of(experiment, validation.strategy(index)));
    // Ranks that sleep have no kernels to time at the shapes of a shard, so the forecast estimates the
    // shard's trace.
    validation.partitions.push_back(options.sleep ? "" : partition_name(experiment.plan.partition));
  }
  return validation;
}

bool any_plan(const Validation& validation, bool Plan::*what) {
  return std::ranges::any_of(validation.unmeasured, [what](const Experiment& one) { return one.plan.*what; });
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
                               const std::filesystem::path& folder, Overrides more, Library& library) {
  const NetworkVariant& variant = validation.variants[index];
  if (!more.trace) more.trace = trace_file(folder, variant).string();
  const bool compresses = validation.plan(index).compresses;
  const bool by_host = compresses && std::filesystem::exists(host_platform_file(folder));
  more.platform = command_line_name((by_host ? host_platform_file(folder) : platform_file(folder)).string());
  if (compresses) more.compression_times = compression_file(folder, variant.model).string();
  if (const std::string& partition = validation.partitions[index]; !partition.empty()) {
    const auto file = shard_trace_file(folder, variant, partition);
    if (std::filesystem::exists(file))  // otherwise the plan reports why the shard has no trace
      more.part_trace = file.string();
  }
  return build(validation, index, std::move(more), library);
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
  if (std::ssize(plan.endpoints) > ranks) {
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
      std::string why = unsupported_compressed_sum(plan, one);
      if (!why.empty()) return why;
      continue;
    }
    const double elements = one.buffer.elements.size();
    const int shares = one.by_group ? communicator_of(plan, one).groups() / one.groups_of_share : 1;
    const double sent = shares * one.buffer.size.value;
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
  if (!sleep && noise.imbalance > 0)
    return "data.imbalance needs --sleep, because ranks that compute have samples of one size; leave it out";
  const bool drawn = noise.jitter == Noise::Jitter::lognormal || noise.jitter == Noise::Jitter::layers;
  if (!sleep && (drawn || noise.has_stragglers()))
    return "noise: random noise needs --sleep, because ranks that compute have noise of their own; leave "
           "noise out or "
           "give noise.jitter: trace";
  return {};
}

}  // namespace stepcast
