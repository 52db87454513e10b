#include <algorithm>
#include <stdexcept>

#include "strategies/block.hpp"
#include "strategies/block_figures.hpp"
#include "strategies/collectives/algorithms.hpp"
#include "strategies/communicator.hpp"

namespace stepcast {
namespace {

int add(Plan& plan, Collective::Kind kind, int communicator, const Buffer& buffer,
        std::shared_ptr<const Schedule> schedule = nullptr) {
  plan.collectives.push_back({kind, communicator, buffer, std::move(schedule)});
  return static_cast<int>(plan.collectives.size()) - 1;
}

/// Rank i of every replica, for each i: those that hold the same share of the model.
std::vector<int> peers(int workers, int replica) {
  std::vector<int> ranks;
  for (int first = 0; first < replica; ++first) {
    for (int rank = first; rank < workers; rank += replica) ranks.push_back(rank);
  }
  return ranks;
}

/// Sums inside a replica, and the last part of the spreading: everyone there gets the whole model.
void add_inside(Plan& plan, const Platform& platform, Workload& workload, const BlockSetup& setup) {
  const int workers = static_cast<int>(plan.endpoints.size());
  plan.communicators.push_back(
      communicator(platform, plan.endpoints, first_ranks(workers), setup.workers_per_replica));
  apply(setup.communication, plan.communicators.back());
  for (Bucket& bucket : workload.buckets) {
    if (bucket.gradient.value > 0 && setup.workers_per_replica > 1)
      bucket.sum =
          add(plan, Collective::Kind::all_reduce, 0, {Array::gradients, bucket.elements, bucket.gradient});
  }
}

void add_aggregation(Plan& plan, const Platform& platform, BlockSetup& setup) {
  const int replicas = setup.training.replicas, inside = setup.workers_per_replica;
  plan.communicators.push_back(communicator(
      platform, plan.endpoints, peers(static_cast<int>(plan.endpoints.size()), inside), replicas));
  apply(setup.communication, plan.communicators.back());
  const Slice whole{0, static_cast<std::int64_t>(setup.parameters.value / 4)};
  const Buffer share{Array::parameters, whole, (1.0 / inside) * setup.parameters};
  const Slice part{0, whole.size() / inside};
  const Group group{replicas, plan.communicators.back().ranks_per_node};
  using Kind = Collective::Kind;
  if (setup.aggregation == Aggregation::tree) {
    setup.training.gather = {add(plan, Kind::reduce, 1, share)};
    setup.training.spread = {add(plan, Kind::broadcast, 1, share)};
  } else if (setup.aggregation == Aggregation::flat) {
    setup.training.gather = {
        add(plan, Kind::exchange, 1, share, std::make_shared<const Schedule>(flat_reduce(group)))};
    setup.training.spread = {
        add(plan, Kind::exchange, 1, share, std::make_shared<const Schedule>(flat_broadcast(group)))};
  } else if (setup.compression.kind == Compression::none) {
    setup.training.gather = {add(plan, Kind::all_reduce, 1, share)};
  } else {
    const Collective sum = compressed_sum(setup.compression, part, replicas);
    setup.training.gather = {add(plan, sum.kind, 1, {Array::parameters, part, sum.buffer.size})};
    const CompressionSeconds codec = compression_seconds(setup.compression, part.size(), replicas);
    setup.training.quantize = {"quantize", codec.quantize, nullptr};
    setup.training.restore = {"restore", codec.restore, nullptr};
  }
  for (Collective& one : plan.collectives) one.by_group = inside > 1 && one.communicator == 1;
  if (inside > 1)
    setup.training.spread.push_back(
        add(plan, Kind::all_gather, 0, {Array::parameters, whole, setup.parameters}));
}

/// One role for all; where the master balances the load, one each, since counts differ.
void add_roles(Plan& plan, const BlockSetup& setup) {
  const auto options = std::make_shared<const BlockTraining>(setup.training);
  const int workers = static_cast<int>(plan.endpoints.size());
  const int roles = setup.training.balanced ? workers : 1;
  plan.deals_work = setup.training.balanced;
  for (int i = 0; i < roles; ++i) {
    const auto program = [options, i](Worker& worker) { return block_training(worker, *options, i); };
    plan.roles.push_back({"worker", i, workers / roles, 0, true, program});
    if (i == 0) continue;
    plan.channels.emplace_back(i, 0);
    plan.channels.emplace_back(0, i);
  }
}

}  // namespace

Arithmetic average_arithmetic(int replicas) {
  return [replicas](Arrays& arrays) {
    for (float& value : arrays.of(Array::parameters)) value /= static_cast<float>(replicas);
  };
}

Arithmetic filter_arithmetic(const BlockFilter& filter, int replicas) {
  return [filter, average = average_arithmetic(replicas)](Arrays& arrays) {
    average(arrays);
    const std::span<float> parameters = arrays.of(Array::parameters), center = arrays.of(Array::center);
    filter_block_update(filter, parameters, {arrays.of(Array::model), arrays.of(Array::change)}, center);
    std::ranges::copy(center, parameters.begin());
  };
}

const std::vector<std::string>& aggregation_names() {
  static const std::vector<std::string> names{"tree", "flat", "all_reduce"};
  return names;
}

Plan block_plan(const Platform& platform, std::vector<int> endpoints, Workload workload, BlockSetup setup) {
  const int workers = static_cast<int>(endpoints.size());
  if (workers % setup.workers_per_replica != 0)
    throw std::invalid_argument("block_plan: workers_per_replica must divide the workers");
  setup.training.replicas = workers / setup.workers_per_replica;
  // One replica has nobody to deal out to; of one mini-batch each there is nothing to deal out.
  if (setup.training.replicas == 1 || setup.training.mini_batches == 1) setup.training.balanced = false;
  Plan plan;
  plan.endpoints = std::move(endpoints);
  plan.workers = plan.devices = workers;
  plan.summed_gradients = setup.workers_per_replica;
  add_inside(plan, platform, workload, setup);
  if (setup.training.replicas > 1) add_aggregation(plan, platform, setup);
  plan.samples_a_step = setup.batch * setup.training.mini_batches * workers;
  setup.training.block_samples = plan.samples_a_step;
  add_block_work(workload, setup);
  plan.workloads.push_back(std::move(workload));
  add_roles(plan, setup);
  plan.figures = block_figures(setup, plan.samples_a_step);
  return plan;
}

}  // namespace stepcast
