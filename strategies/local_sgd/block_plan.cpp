#include "strategies/local_sgd/block_plan.hpp"

#include <algorithm>
#include <stdexcept>

#include "strategies/collectives/schedule.hpp"
#include "strategies/plan/plan.hpp"

namespace stepcast {
namespace {

double sum_of(const Workload& workload, double LayerSeconds::*pass) {
  double seconds = 0;
  for (const LayerSeconds& layer : workload.median) seconds += layer.*pass;
  return seconds;
}

/// Mini-batches that a worker processes in a validation, or pays for in a block.
double validation_batches(const BlockSetup& setup, const BlockRun& run) {
  const BlockValidation& validation = setup.validation;
  const double samples = validation.spread ? validation.every : run.block_samples;
  return run.options.mini_batches * validation.samples / samples;
}

/// Sets the times of the run, from those of the layers.
void set_times(const Workload& workload, const BlockSetup& setup, BlockRun& run) {
  const BlockTraining& options = run.options;
  const double forward = sum_of(workload, &LayerSeconds::forward);
  run.split_seconds = {options.mini_batches * (forward + sum_of(workload, &LayerSeconds::backward) +
                                               sum_of(workload, &LayerSeconds::update))};
  run.split = options.mini_batches * workload.input;
  const double inside = setup.workers_per_replica;
  run.filter = {
      "filter", ((setup.filters ? kFilterArrays : kAverageArrays) / inside) * setup.array_seconds,
      setup.filters ? filter_arithmetic(options.filter, run.replicas) : average_arithmetic(run.replicas)};
  run.first_filter = run.filter;
  if (setup.filters)
    run.first_filter.run = filter_arithmetic({.learning_rate = options.filter.learning_rate}, run.replicas);
  const BlockValidation& validation = setup.validation;
  if (validation.every == 0) return;
  if (!validation.spread) run.validation_every = validation.every;
  run.validation = {
      "validate", {validation_batches(setup, run) * validation.compute_factor * forward}, nullptr};
}

CollectiveId add(Plan& plan, Collective::Kind kind, CommunicatorId communicator, const Buffer& buffer,
                 std::shared_ptr<const Schedule> schedule = nullptr) {
  return add(plan, {kind, communicator, buffer, std::move(schedule)});
}

constexpr CommunicatorId kInsideReplica{0}, kBetweenReplicas{1};

/// Groups of the ranks that hold the same share of the model: rank i of every replica, for each i.
std::vector<RankId> peers(int workers, int replica) {
  std::vector<RankId> ranks;
  for (int first = 0; first < replica; ++first) {
    for (int rank = first; rank < workers; rank += replica) ranks.emplace_back(rank);
  }
  return ranks;
}

/// Adds the communicator of each replica, and the sums of gradients in it.
void add_inside(Plan& plan, const Platform& platform, Workload& workload, const BlockSetup& setup) {
  const int workers = plan.endpoints.size();
  plan.communicators.push_back(
      communicator(platform, plan.endpoints, first_ranks(workers), setup.workers_per_replica));
  apply(setup.communication, plan.communicators.back());
  for (Bucket& bucket : workload.buckets) {
    if (bucket.gradient.value > 0 && setup.workers_per_replica > 1)
      bucket.sum = add(plan, Collective::Kind::all_reduce, kInsideReplica,
                       {Array::gradients, bucket.elements, bucket.gradient});
  }
}

/// Adds the communicator of the replicas, and the collectives before and after the filter.
void add_aggregation(Plan& plan, const Platform& platform, const BlockSetup& setup, BlockRun& run) {
  const int replicas = run.replicas, inside = setup.workers_per_replica;
  plan.communicators.push_back(
      communicator(platform, plan.endpoints, peers(plan.endpoints.size(), inside), replicas));
  apply(setup.communication, plan.communicators.back());
  const Slice whole{0, static_cast<std::int64_t>(setup.parameters.value / 4)};
  const Buffer share{Array::parameters, whole, (1.0 / inside) * setup.parameters};
  const Slice part{0, whole.size() / inside};
  const Group group{replicas, plan.communicators.back().ranks_per_node};
  using Kind = Collective::Kind;
  if (setup.aggregation == Aggregation::tree) {
    run.sum_models = {add(plan, Kind::reduce, kBetweenReplicas, share)};
    run.send_model = {add(plan, Kind::broadcast, kBetweenReplicas, share)};
  } else if (setup.aggregation == Aggregation::flat) {
    run.sum_models = {add(plan, Kind::exchange, kBetweenReplicas, share,
                          std::make_shared<const Schedule>(flat_reduce(group)))};
    run.send_model = {add(plan, Kind::exchange, kBetweenReplicas, share,
                          std::make_shared<const Schedule>(flat_broadcast(group)))};
  } else if (setup.compression.kind == Compression::none) {
    run.sum_models = {add(plan, Kind::all_reduce, kBetweenReplicas, share)};
  } else {
    const Collective sum = compressed_sum(setup.compression, part, replicas);
    run.sum_models = {add(plan, sum.kind, kBetweenReplicas, {Array::parameters, part, sum.buffer.size})};
    const CompressionSeconds codec = compression_seconds(setup.compression, part.size(), replicas);
    run.quantize = {"quantize", codec.quantize, nullptr};
    run.restore = {"restore", codec.restore, nullptr};
  }
  for (Collective& one : plan.collectives) one.by_group = inside > 1 && one.communicator == kBetweenReplicas;
  if (inside > 1)
    run.send_model.push_back(
        add(plan, Kind::all_gather, kInsideReplica, {Array::parameters, whole, setup.parameters}));
}

/// Adds one role of all workers. Where the master balances the load, each worker has a role of its own, since
/// the numbers of mini-batches differ.
void add_roles(Plan& plan, BlockRun&& made) {
  const auto run = std::make_shared<const BlockRun>(std::move(made));
  const int workers = plan.endpoints.size();
  const int roles = run->options.balanced ? workers : 1;
  plan.assigns_work_by_message = run->options.balanced;
  for (int i = 0; i < roles; ++i) {
    const auto program = [run, i](Worker& worker) { return block_training(worker, *run, RoleId(i)); };
    plan.roles.push_back({"worker", RankId(i), workers / roles, 0, true, program});
    if (i == 0) continue;
    plan.channels.emplace_back(i, 0);
    plan.channels.emplace_back(0, i);
  }
}

/// Mean over blocks of the latest or the earliest program's time of a phase [s]. The first block waits for
/// the first split and is left out where there are others. All programs end a block before one marks anything
/// of the next.
double mean_of_blocks(const Records& records, const char* phase, int blocks, bool latest) {
  const auto found = records.find(phase);
  if (found == records.end() || blocks == 0) return 0;
  const std::vector<double>& times = found->second;
  const std::size_t programs = times.size() / blocks;
  const std::size_t first = blocks > 1 ? 1 : 0;
  double sum = 0;
  for (std::size_t block = first; block < static_cast<std::size_t>(blocks); ++block) {
    const auto begin = times.begin() + (block * programs);
    const auto end = begin + programs;
    sum += latest ? *std::max_element(begin, end) : *std::min_element(begin, end);
  }
  return sum / (blocks - static_cast<int>(first));
}

/// Columns of the compressed update of a block.
Figures codec_figures(const BlockSetup& setup, int replicas) {
  if (setup.compression.kind == Compression::none || replicas == 1) return {};
  const auto elements = static_cast<std::int64_t>(setup.parameters.value / 4) / setup.workers_per_replica;
  return compression_figures(wire_bytes(setup.compression, elements),
                             compression_seconds(setup.compression, elements, replicas));
}

std::function<Figures(const Records&, double)> block_figures(const BlockSetup& setup, const BlockRun& run) {
  const double samples = run.block_samples;
  const int blocks = run.options.blocks;
  const double alone = run.split_seconds.value + run.options.mini_batches * run.options.step_overhead.value;
  const double sweep_blocks = setup.epoch_samples / samples;
  // Whole validations are rare, and the simulated blocks may have none: count every block's share.
  const double every = run.validation_every;
  const double share = every > 0 ? samples / every * run.validation.duration.value : 0;
  const Figures codec = codec_figures(setup, run.replicas);
  return [=](const Records& records, double seconds) {
    // The time until the last worker is ready; the wait of the others is no part of the aggregation.
    const double optimize = mean_of_blocks(records, "optimize", blocks, true);
    const double aggregate = mean_of_blocks(records, "aggregate", blocks, false);
    const double validate = every > 0 ? share : mean_of_blocks(records, "validate", blocks, false);
    const double whole = every > 0 ? optimize + aggregate + validate : seconds;
    Figures figures{{"block_seconds", seconds},
                    {"block_optimize_seconds", optimize},
                    {"block_aggregate_seconds", aggregate},
                    {"block_validate_seconds", validate},
                    {"overhead", (whole - validate) / alone - 1}};
    figures.insert(figures.end(), codec.begin(), codec.end());
    if (sweep_blocks == 0) return figures;
    figures.emplace_back("sweep_optimize_minutes", sweep_blocks * optimize / 60);
    figures.emplace_back("sweep_aggregate_minutes", sweep_blocks * aggregate / 60);
    figures.emplace_back("sweep_validate_minutes", sweep_blocks * validate / 60);
    figures.emplace_back("sweep_minutes", sweep_blocks * whole / 60);
    return figures;
  };
}

}  // namespace

const Words<Aggregation>& aggregation_words() {
  static const Words<Aggregation> words{
      {"tree", Aggregation::tree}, {"flat", Aggregation::flat}, {"all_reduce", Aggregation::all_reduce}};
  return words;
}

Plan block_plan(const Platform& platform, std::vector<int> endpoints, Workload workload, BlockSetup setup) {
  const int workers = endpoints.size();
  if (workers % setup.workers_per_replica != 0)
    throw std::invalid_argument("block_plan: workers_per_replica must divide the workers");
  BlockRun run;
  run.options = setup.training;
  run.replicas = workers / setup.workers_per_replica;
  // One replica, or one mini-batch for each, leaves the master nothing to assign.
  if (run.replicas == 1 || run.options.mini_batches == 1) run.options.balanced = false;
  Plan plan;
  plan.endpoints = std::move(endpoints);
  plan.workers = plan.devices = workers;
  plan.summed_gradients = setup.workers_per_replica;
  add_inside(plan, platform, workload, setup);
  if (run.replicas > 1) add_aggregation(plan, platform, setup, run);
  plan.samples_a_step = setup.batch * run.options.mini_batches * workers;
  run.block_samples = plan.samples_a_step;
  set_times(workload, setup, run);
  plan.workloads.push_back(std::move(workload));
  plan.figures = block_figures(setup, run);
  add_roles(plan, std::move(run));
  return plan;
}

}  // namespace stepcast
