#include <algorithm>

#include "models/cost.hpp"
#include "strategies/buckets.hpp"
#include "strategies/communicator.hpp"
#include "strategies/compression.hpp"
#include "strategies/zero.hpp"

namespace stepcast {
namespace {

int add_collective(Plan& plan, Collective::Kind kind, Array array, const Bucket& bucket) {
  if (plan.communicators.front().size == 1 || bucket.gradient.value <= 0) return -1;
  plan.collectives.push_back({kind, 0, {array, bucket.elements, bucket.gradient}, nullptr});
  return static_cast<int>(plan.collectives.size()) - 1;
}

/// Every worker updates its share.
void share_updates(const Setting& setting, std::vector<LayerSeconds>& layers) {
  const std::vector<LayerCost> costs = layer_costs(setting.model);
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const double launches = costs[i].update.kernels * setting.device.launch_overhead.value;
    layers[i].update = shared_update(layers[i].update, launches, setting.workers());
  }
}

Zero read_options(const YamlMap& map, const Setting& setting, const TrainingOptions& training) {
  Zero run;
  run.steps = setting.steps;
  run.prefetch = setting.prefetch;
  run.step_overhead = training.step_overhead;
  run.stage = static_cast<int>(map.at("stage", "1, 2 or 3").integer(1, 3));
  if (const auto overlap = map.maybe("overlap")) run.overlap = overlap->boolean();
  if (const auto times = map.maybe("accumulation"))
    run.micro_batches = static_cast<int>(times->integer(1, 1'000'000));
  return run;
}

/// Keys that do nothing beside the others: compute beside a collective are gathers of stage 3, scatters that
/// overlap, and those of a micro-batch beside the next.
void note_idle_options(const YamlMap& map, const Zero& run, Plan& plan) {
  if (plan.workers == 1) return;
  note_idle_communication(map, "with kind: zero", true, plan);
  const bool beside = run.overlap || run.stage == 3 || (run.stage == 2 && run.micro_batches > 1);
  if (!beside) note_idle(map, {"compute_slowdown"}, "with overlap: false", plan.idle_keys);
}

}  // namespace

double shared_update(double seconds, double launches, int ways) {
  const double fixed = std::min(seconds, launches);
  return fixed + (seconds - fixed) / ways;
}

Plan read_zero(const YamlValue& value, const Setting& setting) {
  const YamlMap map = value.map(
      joined_keys({training_keys(), communication_keys(), {"stage", "bucket", "overlap", "accumulation"}}));
  const TrainingOptions training = read_training_options(map);
  refuse_compression(map, "gradients that are dealt out by reduce-scatter are not compressed");
  Zero run = read_options(map, setting, training);
  const std::int64_t batch = samples_per_replica(setting, setting.workers(), run.micro_batches);
  const std::int64_t micro_batch = batch / run.micro_batches;

  Plan plan;
  plan.endpoints = setting.devices;
  plan.workers = plan.devices = setting.workers();
  plan.summed_gradients = plan.workers * run.micro_batches;
  if (training.mixed) plan.no_arithmetic = "precision: mixed";
  plan.communicators.push_back(
      communicator(setting.platform, plan.endpoints, first_ranks(plan.workers), plan.workers));
  apply(read_communication(map), plan.communicators.back());
  Workload workload = make_workload(setting.model, setting.times(micro_batch), training.compute_factor, plan);
  share_updates(setting, workload.median);
  for (auto& sample : workload.samples) share_updates(setting, sample);
  Bytes bucket{26214400};
  if (const auto size = map.maybe("bucket")) bucket = read_bucket(*size);
  workload.buckets = gradient_buckets(gradient_arrays(setting.model), training.element(), bucket);
  workload.input = static_cast<double>(micro_batch) * setting.sample_size;
  for (const Bucket& one : workload.buckets) {
    run.scatters.push_back(add_collective(plan, Collective::Kind::reduce_scatter, Array::gradients, one));
    run.gathers.push_back(add_collective(plan, Collective::Kind::all_gather, Array::parameters, one));
  }
  plan.workloads.push_back(std::move(workload));

  MemoryOptions memory = setting.memory;
  memory.batch = micro_batch;
  if (training.mixed) memory.precision = MemoryOptions::Precision::mixed;
  memory.zero = static_cast<MemoryOptions::Zero>(run.stage);
  memory.zero_ways = setting.workers();
  plan.memory = training_memory(setting.model, memory);
  plan.fits = fits(plan.memory, setting.device);
  plan.why_not = why_not(plan.memory, setting.device);
  plan.compute_slowdown = training.compute_slowdown;
  plan.load_data = setting.sample_size.value > 0;
  plan.batch_per_worker = batch;
  plan.samples_a_step = static_cast<double>(batch) * setting.workers();
  note_idle_options(map, run, plan);
  plan.roles.push_back(
      {"worker", 0, setting.workers(), 0, true,
       [run = std::make_shared<const Zero>(std::move(run))](Worker& worker) { return zero(worker, *run); }});
  return plan;
}

}  // namespace stepcast
