#include "strategies/model_parallel/group_plan.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "models/cost/memory_options.hpp"
#include "models/layer_times/trace.hpp"
#include "models/partition/tensor_shard.hpp"
#include "strategies/options/strategy.hpp"
#include "strategies/plan/buckets.hpp"
#include "strategies/plan/plan.hpp"

namespace stepcast {
namespace {

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

CommunicatorId communicator_of(const GroupPlan& groups, Exchange::Axis axis) {
  switch (axis) {
    case Exchange::Axis::context:
      return groups.context;
    case Exchange::Axis::expert:
      return groups.expert;
    case Exchange::Axis::tensor:
      break;
  }
  return groups.group;
}

/// Adds the collectives of exchanges around a layer.
/// @param carried  array that the exchanges send
void add_calls(const std::vector<Exchange>& exchanges, int layer, Array carried, GroupPlan& groups,
               std::vector<Call>& calls) {
  const std::int64_t batch = groups.batch[layer];
  for (const Exchange& exchange : exchanges) {
    const CommunicatorId ranks = communicator_of(groups, exchange.axis);
    const bool to_all = exchange.kind == Exchange::Kind::all_to_all;
    const double whole = to_all ? groups.plan.communicators[ranks.index()].size : 1;
    const Bytes size = batch * exchange.elements * whole * groups.element;
    const CollectiveId collective = add_collective(groups.plan, kind_of(exchange.kind), ranks, size);
    if (!collective.exists()) continue;
    groups.plan.collectives.back().buffer.array = carried;
    groups.plan.collectives.back().layer = layer;
    groups.plan.collectives.back().fills_nics = exchange.fills_nics;
    calls.push_back({collective, "exchange"});
  }
}

/// The ring of a layer, if it has one.
Call ring_call(const std::optional<Exchange>& ring, int layer, Array carried, GroupPlan& groups) {
  std::vector<Call> calls;
  if (ring) add_calls({*ring}, layer, carried, groups, calls);
  return calls.empty() ? Call{} : calls.front();
}

}  // namespace

void check_groups(const Setting& setting, std::int64_t devices, const YamlValue& where) {
  if (setting.workers() % devices != 0)
    where.refuse(
        fmt::format("{} workers cannot form groups of {}; give a divisor", setting.workers(), devices));
}

GroupPlan begin_groups(const Setting& setting, const GroupOptions& options, std::int64_t devices,
                       const YamlValue& where) {
  check_groups(setting, devices, where);
  const int workers = setting.workers();
  GroupPlan groups;
  groups.options = options;
  groups.ways = devices;
  groups.element = options.training.element();
  groups.memory = setting.memory;
  groups.memory.bucket_copies = false;
  if (options.training.mixed) groups.memory.precision = MemoryOptions::Precision::mixed;
  groups.calls.resize(setting.model.layers.size());
  Plan& plan = groups.plan;
  plan.endpoints = setting.devices;
  plan.workers = plan.devices = workers;
  plan.communicators = {communicator(setting.platform, plan.endpoints, first_ranks(workers), devices)};
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

CollectiveId add_collective(Plan& plan, Collective::Kind kind, CommunicatorId communicator, Bytes size) {
  if (plan.communicators[communicator.index()].size == 1 || size.value <= 0) return {};
  return add(plan, {kind, communicator, {Array::activations, {}, size}, nullptr});
}

void add_exchanges(LayerRange layers, GroupPlan& groups) {
  for (int layer = layers.first; layer < layers.last; ++layer) {
    const LayerExchange& exchange = groups.sharded.exchanges[layer];
    LayerCalls& calls = groups.calls[layer];
    add_calls(exchange.before_forward, layer, Array::activations, groups, calls.before_forward);
    add_calls(exchange.after_forward, layer, Array::activations, groups, calls.after_forward);
    add_calls(exchange.before_backward, layer, Array::errors, groups, calls.before_backward);
    add_calls(exchange.during_backward, layer, Array::activations, groups, calls.during_backward);
    add_calls(exchange.after_backward, layer, Array::errors, groups, calls.after_backward);
    if (!exchange.forward_ring) continue;
    calls.forward_halo = ring_call(exchange.forward_ring, layer, Array::activations, groups);
    calls.backward_halo = ring_call(exchange.backward_ring, layer, Array::errors, groups);
    calls.forward_border = calls.backward_border = exchange.last_share;
    calls.sides = 1;
  }
}

namespace {

/// The gradients of one sum over devices, and where they lie among all gradients of the layers.
struct SummedGradients {
  std::vector<LayerGradients> arrays;  ///< of all layers of the model; empty for those of other sums
  std::vector<Slice> places;           ///< of each of these arrays

  /// Slices of all gradients that elements of these arrays are.
  std::vector<Slice> parts(const Slice& elements) const {
    std::vector<Slice> found;
    std::int64_t begin = 0;
    for (const Slice& place : places) {
      const std::int64_t first = std::max(elements.begin, begin) - begin,
                         last = std::min(elements.end, begin + place.size()) - begin;
      begin += place.size();
      if (first >= last) continue;
      const Slice own{place.begin + first, place.begin + last};
      if (!found.empty() && found.back().end == own.begin)
        found.back().end = own.end;
      else
        found.push_back(own);
    }
    return found;
  }
};

SummedGradients summed_gradients(LayerRange layers, bool summed_in_group, const ShardedModel& sharded) {
  SummedGradients summed;
  std::int64_t begin = 0;
  for (int i = 0; i < static_cast<int>(sharded.part.layers.size()); ++i) {
    const auto layer = static_cast<std::size_t>(i);
    LayerGradients& own = summed.arrays.emplace_back();
    if (i < layers.first || i >= layers.last) continue;
    const bool experts = sharded.shares_experts && sharded.part.layers[layer].kind == LayerKind::experts;
    for (const ParameterTensor& tensor : sharded.part.layers[layer].parameters) {
      if (!tensor.trainable) continue;
      const bool is_router = experts && &tensor == &sharded.part.layers[layer].parameters.front();
      const Slice place{begin, begin + tensor.elements()};
      begin = place.end;
      if ((is_router || sharded.summed_in_group[layer]) != summed_in_group) continue;
      own.push_back(tensor.elements());
      summed.places.push_back(place);
    }
  }
  return summed;
}

}  // namespace

std::vector<Bucket> add_sums(LayerRange layers, bool summed_in_group, CommunicatorId communicator,
                             const GradientSizes& sizes, GroupPlan& groups) {
  const SummedGradients summed = summed_gradients(layers, summed_in_group, groups.sharded);
  std::vector<Bucket> buckets;
  for (Bucket bucket : gradient_buckets(summed.arrays, sizes.element, sizes.bucket)) {
    if (bucket.gradient.value <= 0) continue;
    bucket.layers = {std::max(bucket.layers.first, layers.first), std::min(bucket.layers.last, layers.last)};
    bucket.sum = add_collective(groups.plan, Collective::Kind::all_reduce, communicator, bucket.gradient);
    if (bucket.sum.exists()) {
      std::vector<Slice> parts = summed.parts(bucket.elements);
      const bool is_slice = parts.size() == 1;
      groups.plan.collectives.back().buffer = {Array::gradients, is_slice ? parts.front() : Slice{},
                                               bucket.gradient};
      if (!is_slice) groups.plan.collectives.back().parts = std::move(parts);
    }
    buckets.push_back(bucket);
  }
  return buckets;
}

std::vector<std::vector<CollectiveId>> sums_by_layer(const std::vector<Bucket>& buckets, std::size_t layers) {
  std::vector<std::vector<CollectiveId>> sums(layers);
  for (const Bucket& bucket : buckets) {
    if (bucket.sum.exists()) sums[bucket.layers.first].push_back(bucket.sum);
  }
  return sums;
}

void refuse_if(const std::string& problem, const YamlValue& where) {
  if (!problem.empty()) where.refuse(problem);
}

Trace part_times(const Setting& setting, const GroupPlan& groups) {
  if (!groups.captured_trace) return setting.part_trace({&groups.sharded.part, groups.batch});
  const Trace& named = setting.named_trace(*groups.captured_trace);
  if (named.batch != groups.micro_batch) {
    groups.captured_trace->refuse(
        fmt::format("expected a trace of batch {} (the micro-batch of a replica), got one of batch {}",
                    groups.micro_batch, named.batch));
  }
  check_fits(named, groups.sharded.part);
  return named;
}

TimesSource source_of_part(const GroupPlan& groups, const Trace& times) {
  TimesSource source{times.kind == Trace::Kind::captured ? "captured" : "derived", times.flags};
  if (groups.ways > 1 && !groups.captured_trace) source.kind += ", part";
  return source;
}

void finish_group_plan(const Setting& setting, const GroupPlan& groups, const Trace& times,
                       const Memory& memory, Plan& plan) {
  finish_plan(setting, groups.options.training,
              {source_of_part(groups, times), plan.batch_per_worker, plan.samples_a_step, memory, "",
               groups.options.micro_batches},
              plan);
}

std::string statistics_problem(const Model& model, int over, int ways) {
  if (over == ways || !has_layers(model, LayerKind::batch_norm)) return "";
  return "batch-norm statistics of other samples than those of the group";
}

ModelPartition machine_partition(const Model& model, int machines, const GroupOptions& options,
                                 std::int64_t batch) {
  ModelPartition partition;
  partition.form = ModelPartition::Form::slices;
  partition.ways = machines;
  partition.micro_batch = batch;
  partition.micro_batches = options.micro_batches;
  partition.spatial = stepcast::partition(model, machines).spatial;
  partition.spatial.separate_border = options.halo_overlap && partition.spatial.whole_from > 0;
  partition.simulated_only = statistics_problem(model, 1, machines);
  if (partition.simulated_only.empty() && options.training.mixed)
    partition.simulated_only = "activations of 2 bytes";
  if (partition.simulated_only.empty()) partition.simulated_only = machine_part_problem(model, machines);
  return partition;
}

}  // namespace stepcast
