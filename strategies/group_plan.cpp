#include "strategies/group_plan.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "strategies/buckets.hpp"
#include "strategies/communicator.hpp"
#include "strategies/compression.hpp"

namespace stepcast {
namespace {

/// Ranks in the same place of every group, place after place.
std::vector<int> by_place(int workers, int ways) {
  std::vector<int> ranks;
  for (int place = 0; place < ways; ++place) {
    for (int rank = place; rank < workers; rank += ways) ranks.push_back(rank);
  }
  return ranks;
}

Collective::Kind kind_of(Exchange::Kind kind) {
  switch (kind) {
    case Exchange::Kind::all_gather:
      return Collective::Kind::all_gather;
    case Exchange::Kind::reduce_scatter:
      return Collective::Kind::reduce_scatter;
    case Exchange::Kind::all_to_all:
      return Collective::Kind::all_to_all;
    case Exchange::Kind::all_reduce:
      break;
  }
  return Collective::Kind::all_reduce;
}

/// @param carried  by the exchanges
void add_calls(const std::vector<Exchange>& exchanges, int layer, Array carried, GroupPlan& groups,
               std::vector<Call>& calls) {
  const std::int64_t batch = groups.batch[static_cast<std::size_t>(layer)];
  for (const Exchange& exchange : exchanges) {
    const double whole = exchange.kind == Exchange::Kind::all_to_all ? groups.ways : 1;
    const Bytes size = static_cast<double>(batch) * exchange.elements * whole * groups.element;
    const int collective = add_collective(groups.plan, kind_of(exchange.kind), groups.group, size);
    if (collective < 0) continue;
    groups.plan.collectives.back().buffer.array = carried;
    groups.plan.collectives.back().layer = layer;
    calls.push_back({collective, "exchange"});
  }
}

}  // namespace

const std::vector<std::string>& group_keys() {
  static const std::vector<std::string> keys =
      joined_keys({training_keys(),
                   communication_keys(),
                   {"bucket", "overlap", "halo_overlap", "accumulation", "recompute", "exchange_overhead"}});
  return keys;
}

GroupOptions read_group_options(const YamlMap& map) {
  GroupOptions options;
  options.given = map;
  options.training = read_training_options(map);
  refuse_compression(map, "gradients of networks that devices share are not compressed");
  options.communication = read_communication(map);
  if (const auto bucket = map.maybe("bucket")) options.bucket = read_bucket(*bucket);
  if (const auto overlap = map.maybe("overlap")) options.overlap = overlap->boolean();
  if (const auto overlap = map.maybe("halo_overlap")) options.halo_overlap = overlap->boolean();
  if (const auto again = map.maybe("recompute")) options.recompute = again->boolean();
  if (const auto wait = map.maybe("exchange_overhead")) options.exchange_overhead = wait->seconds();
  if (const auto times = map.maybe("accumulation"))
    options.micro_batches = static_cast<int>(times->integer(1, 1'000'000));
  return options;
}

GroupPlan begin_groups(const Setting& setting, const GroupOptions& options, int ways,
                       const YamlValue& where) {
  const int workers = setting.workers();
  if (workers % ways != 0) where.refuse(fmt::format("{} workers cannot be grouped by {}", workers, ways));
  GroupPlan groups;
  groups.options = options;
  groups.ways = ways;
  groups.element = options.training.element();
  groups.memory = setting.memory;
  if (options.training.mixed) groups.memory.precision = MemoryOptions::Precision::mixed;
  if (options.recompute) groups.memory.recomputation = MemoryOptions::Recomputation::blocks;
  groups.calls.resize(setting.model.layers.size());
  Plan& plan = groups.plan;
  plan.endpoints = setting.devices;
  plan.workers = plan.devices = workers;
  plan.communicators = {
      communicator(setting.platform, plan.endpoints, first_ranks(workers), ways),
      communicator(setting.platform, plan.endpoints, by_place(workers, ways), workers / ways),
      communicator(setting.platform, plan.endpoints, first_ranks(workers), workers)};
  for (const int gradients : {groups.replicas, groups.all})
    apply(options.communication, plan.communicators[static_cast<std::size_t>(gradients)]);
  return groups;
}

void set_samples(const Setting& setting, int shares, GroupPlan& groups) {
  const std::int64_t samples = samples_per_replica(setting, shares, groups.options.micro_batches);
  groups.micro_batch = samples / groups.options.micro_batches;
  groups.batch.assign(setting.model.layers.size(), groups.micro_batch);
  groups.memory.batch = groups.micro_batch;
  groups.plan.batch_per_worker = samples;
  groups.plan.samples_a_step = static_cast<double>(samples) * shares;
}

int add_collective(Plan& plan, Collective::Kind kind, int communicator, Bytes size) {
  if (plan.communicators[static_cast<std::size_t>(communicator)].size == 1 || size.value <= 0) return -1;
  plan.collectives.push_back({kind, communicator, {Array::activations, {}, size}, nullptr});
  return static_cast<int>(plan.collectives.size()) - 1;
}

void add_exchanges(LayerRange layers, GroupPlan& groups) {
  for (int layer = layers.first; layer < layers.last; ++layer) {
    const auto i = static_cast<std::size_t>(layer);
    const LayerExchange& exchange = groups.sharded.exchanges[i];
    LayerCalls& calls = groups.calls[i];
    add_calls(exchange.before_forward, layer, Array::activations, groups, calls.before_forward);
    add_calls(exchange.after_forward, layer, Array::activations, groups, calls.after_forward);
    add_calls(exchange.before_backward, layer, Array::errors, groups, calls.before_backward);
    add_calls(exchange.after_backward, layer, Array::errors, groups, calls.after_backward);
  }
}

std::vector<Bucket> add_sums(LayerRange layers, bool summed_in_group, int communicator, GroupPlan& groups) {
  std::vector<LayerGradients> gradients = gradient_arrays(groups.sharded.part);
  bool all = true;  // of the layers' gradients: then buckets are slices of them
  for (int i = 0; i < static_cast<int>(gradients.size()); ++i) {
    const auto layer = static_cast<std::size_t>(i);
    const bool here = i >= layers.first && i < layers.last;
    const bool asked = groups.sharded.summed_in_group[layer] == summed_in_group;
    all = all && (!here || asked || gradients[layer].empty());
    if (!here || !asked) gradients[layer].clear();
  }
  std::vector<Bucket> buckets;
  for (Bucket bucket : gradient_buckets(gradients, groups.element, groups.options.bucket)) {
    if (bucket.gradient.value <= 0) continue;
    bucket.layers = {std::max(bucket.layers.first, layers.first), std::min(bucket.layers.last, layers.last)};
    bucket.sum = add_collective(groups.plan, Collective::Kind::all_reduce, communicator, bucket.gradient);
    if (bucket.sum >= 0) {
      const Slice elements = all ? bucket.elements : Slice{};
      groups.plan.collectives.back().buffer = {Array::gradients, elements, bucket.gradient};
    }
    buckets.push_back(bucket);
  }
  return buckets;
}

std::vector<std::vector<int>> sums_by_layer(const std::vector<Bucket>& buckets, std::size_t layers) {
  std::vector<std::vector<int>> sums(layers);
  for (const Bucket& bucket : buckets) {
    if (bucket.sum >= 0) sums[static_cast<std::size_t>(bucket.layers.first)].push_back(bucket.sum);
  }
  return sums;
}

bool has_dropout(const Model& model) {
  return std::ranges::any_of(model.layers,
                             [](const Layer& layer) { return layer.kind == LayerKind::dropout; });
}

void note_idle_group(const GroupPlan& groups, const std::string& instead, Plan& plan) {
  const GroupOptions& options = groups.options;
  const YamlMap& map = *options.given;
  IdleKeys& idle = plan.idle_keys;
  note_idle_communication(map, instead, true, plan);
  if (plan.devices == 1) return;
  const auto exchanges = [](const LayerCalls& calls) {
    return calls.forward_halo.collective >= 0 || calls.backward_halo.collective >= 0 ||
           !calls.before_forward.empty() || !calls.after_forward.empty() || !calls.before_backward.empty() ||
           !calls.after_backward.empty();
  };
  const auto beside = [](const LayerCalls& calls) {  // what can travel beside work
    return calls.forward_halo.collective >= 0 || calls.backward_halo.collective >= 0 ||
           !calls.after_backward.empty();
  };
  const bool any = std::ranges::any_of(groups.calls, beside);
  if (std::ranges::none_of(groups.calls, exchanges))
    note_idle(map, {"exchange_overhead"}, "where layers exchange nothing", idle);
  if (!any) note_idle(map, {"halo_overlap"}, "where no exchange can be beside work", idle);
  const bool sums = std::ranges::any_of(plan.collectives, [&](const Collective& one) {
    return one.buffer.array == Array::gradients &&
           plan.communicators[static_cast<std::size_t>(one.communicator)].size > 1;
  });
  if (!sums) note_idle(map, {"bucket", "overlap"}, "where no gradients are summed between workers", idle);
  if (!(options.overlap && sums) && !(options.halo_overlap && any))
    note_idle(map, {"compute_slowdown"}, "where nothing travels beside compute", idle);
}

void refuse_if(const std::string& problem, const YamlValue& where) {
  if (!problem.empty()) where.refuse(problem);
}

}  // namespace stepcast
