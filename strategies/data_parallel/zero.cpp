#include "strategies/data_parallel/zero.hpp"

#include <algorithm>
#include <deque>
#include <utility>

#include "core/fields.hpp"
#include "models/cost/cost.hpp"
#include "strategies/compression/gradient_compression.hpp"
#include "strategies/options/strategy.hpp"
#include "strategies/plan/buckets.hpp"
#include "strategies/plan/plan.hpp"
#include "strategies/program/program.hpp"

namespace stepcast {
namespace {

/// Starts a collective, if there is one.
void start(Worker& worker, CollectiveId collective, std::vector<Pending>& pending) {
  if (collective.exists()) pending.push_back(worker.start_collective(collective));
}

/// Waits for the reduce-scatter of a bucket's gradients of one micro-batch, if it runs, and adds this
/// worker's share to that of earlier micro-batches.
SubProgram receive_sums(Worker& worker, const ZeroRun& run, std::size_t bucket, Pending& scattered,
                        int micro_batch) {
  if (scattered == nullptr) co_return;
  co_await worker.finished(std::exchange(scattered, nullptr));
  if (run.options.stage > 1 && run.options.micro_batches > 1)
    co_await worker.local(sum_micro_batch(worker.workload().buckets[bucket],
                                          place_of_micro_batch(micro_batch, run.options.micro_batches),
                                          run.arrays[bucket]));
}

/// Step 1, forward: each bucket's parameters arrive while the bucket before it computes.
SubProgram forward_pass(Worker& worker, const ZeroRun& run) {
  const std::vector<Bucket>& buckets = worker.workload().buckets;
  const bool gathers_layers = run.options.stage == 3;
  std::vector<Pending> gathered;  // of the next bucket
  if (gathers_layers) start(worker, run.gathers.back(), gathered);
  for (std::size_t i = buckets.size(); i-- > 0;) {  // first layer first
    for (Pending& parameters : gathered) co_await worker.finished(std::move(parameters));
    gathered.clear();
    if (gathers_layers && i > 0) start(worker, run.gathers[i - 1], gathered);
    co_await worker.forward(buckets[i].layers);
  }
}

/// Steps 1 and 2, backward. @param scattered  reduce-scatter of each bucket that runs
SubProgram backward_pass(Worker& worker, const ZeroRun& run, int micro_batch,
                         std::vector<Pending>& scattered) {
  const Zero& options = run.options;
  const std::vector<Bucket>& buckets = worker.workload().buckets;
  const bool gathers_layers = options.stage == 3, last = micro_batch + 1 == options.micro_batches;
  std::vector<Pending> gathered;
  if (gathers_layers) start(worker, run.gathers[0], gathered);
  for (std::size_t i = 0; i < buckets.size(); ++i) {  // last layer first
    for (Pending& parameters : gathered) co_await worker.finished(std::move(parameters));
    gathered.clear();
    if (gathers_layers && i + 1 < buckets.size()) start(worker, run.gathers[i + 1], gathered);
    const Bucket& bucket = buckets[i];
    // The gradients are overwritten next, so those of the last micro-batch must have arrived.
    co_await receive_sums(worker, run, i, scattered[i], micro_batch - 1);
    if (options.recompute) co_await worker.forward(bucket.layers);
    co_await worker.backward(bucket.layers);
    const CollectiveId scatter = run.scatters[i];
    const bool travels = scatter.exists() && (last || options.stage > 1);
    if (options.micro_batches > 1 && (options.stage == 1 || !scatter.exists()))
      co_await worker.local(
          sum_micro_batch(bucket, place_of_micro_batch(micro_batch, options.micro_batches), run.arrays[i]));
    if (options.overlap && travels) scattered[i] = worker.start_collective(scatter);
  }
  for (std::size_t i = 0; !options.overlap && (last || options.stage > 1) && i < buckets.size(); ++i)
    if (run.scatters[i].exists()) scattered[i] = worker.start_collective(run.scatters[i]);
}

}  // namespace

Program zero(Worker& worker, const ZeroRun& run) {
  const Zero& options = run.options;
  const Workload& workload = worker.workload();
  const std::size_t buckets = workload.buckets.size();
  std::deque<Pending> loads;
  for (int ahead = 0; ahead < options.prefetch; ++ahead) loads.push_back(worker.start_load(workload.input));

  for (int step = 0; step < options.steps; ++step) {
    if (options.step_overhead.value > 0) co_await worker.pause(options.step_overhead);
    std::vector<Pending> scattered(buckets);
    for (int micro_batch = 0; micro_batch < options.micro_batches; ++micro_batch) {
      loads.push_back(worker.start_load(workload.input));
      co_await worker.finished(std::move(loads.front()));
      loads.pop_front();
      co_await forward_pass(worker, run);                           // 1.
      co_await backward_pass(worker, run, micro_batch, scattered);  // 1. and 2.
    }
    for (std::size_t i = 0; i < buckets; ++i)
      co_await receive_sums(worker, run, i, scattered[i], options.micro_batches - 1);
    if (options.reads_gradients) worker.synchronize();
    co_await worker.optimizer_step();  // 3.
    std::vector<Pending> updated;      // 4.
    for (std::size_t i = 0; options.stage < 3 && i < buckets; ++i) start(worker, run.gathers[i], updated);
    for (Pending& parameters : updated) co_await worker.finished(std::move(parameters));
    worker.end_step();
  }
}

namespace {

/// @returns none for one worker, or if there is nothing to send
CollectiveId add_collective(Plan& plan, Collective::Kind kind, Array array, const Bucket& bucket) {
  if (plan.communicators.front().size == 1 || bucket.gradient.value <= 0) return {};
  return add(plan, {kind, CommunicatorId{0}, {array, bucket.elements, bucket.gradient}, nullptr});
}

/// Makes every worker update its share only.
/// @param compute_factor  by which `layers` are multiplied already
void share_updates(const Setting& setting, double compute_factor, std::vector<LayerSeconds>& layers) {
  const std::vector<LayerCost> costs = layer_costs(setting.model, setting.device.choice());
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const double launches = compute_factor * costs[i].update.kernels * setting.device.kernel_gap().value;
    layers[i].update = shared_update(layers[i].update, launches, setting.workers());
  }
}

const Fields<Zero>& zero_fields() {
  static const Fields<Zero> fields{
      field("stage", &Zero::stage, integer(1, 3), required("1, 2 or 3"),
            "1: optimizer state is partitioned; 2: gradients too; 3: parameters too"),
      details({field("bucket", &Zero::bucket, bucket_size(), kBucketMeaning),
               field("overlap", &Zero::overlap, boolean(),
                     "whether reduce-scatters run during the rest of the backward pass")}),
      field("accumulation", &Zero::micro_batches, integer(1, 1'000'000), "micro-batches in a step"),
      field("recompute", &Zero::recompute, boolean(),
            "whether activations are computed again in the backward pass")};
  return fields;
}

const Keys& zero_keys() {
  static const Keys keys = joined_keys({training_keys(), communication_keys(), zero_fields().keys()});
  return keys;
}

Zero zero_options(const YamlMap& map, const Setting& setting, const TrainingOptions& training) {
  Zero options;
  read_fields(map, zero_fields(), options);
  options.steps = setting.steps;
  options.prefetch = setting.prefetch;
  options.step_overhead = training.step_overhead;
  options.reads_gradients = training.mixed;
  return options;
}

/// Notes keys that have no effect with the other options. Compute runs at the same time as gathers of stage
/// 3, scatters that overlap, and scatters of an earlier micro-batch.
void note_ineffective_options(const YamlMap& map, const Zero& options, Plan& plan) {
  if (plan.workers == 1) return;
  note_ineffective_communication(map, "with kind: zero", true, plan);
  const bool overlaps =
      options.overlap || options.stage == 3 || (options.stage == 2 && options.micro_batches > 1);
  if (!overlaps) note_ineffective(map, {"compute_slowdown"}, "with overlap: false", plan.ineffective_keys);
}

std::string no_arithmetic(const Model& model, const TrainingOptions& training, const Zero& options) {
  if (training.mixed) return "precision: mixed";
  if (options.recompute && has_dropout(model))
    return "recompute (dropout would drop other elements the second time)";
  return {};
}

/// Adds what stage 3 holds beside its partition: the parameters of a bucket and of the one that is gathered
/// meanwhile, and the gradients of a bucket before their scatter.
void add_gathered(const std::vector<Bucket>& buckets, double element, Memory& memory) {
  const auto elements = [&](std::size_t bucket) {
    return bucket < buckets.size() ? static_cast<double>(buckets[bucket].elements.size()) : 0;
  };
  double parameters = 0, gradients = 0;
  for (std::size_t i = 0; i < buckets.size(); ++i) {
    parameters = std::max(parameters, (elements(i) + elements(i + 1)) * element);
    gradients = std::max(gradients, buckets[i].gradient.value);
  }
  memory.gathered = {parameters + gradients};
}

Plan read_zero(const YamlValue& value, const Setting& setting) {
  const YamlMap map = read_map(value, zero_keys());
  const TrainingOptions training = read_training_options(map);
  refuse_compression(map, "not supported with kind: zero, which sends gradients by reduce-scatter");
  ZeroRun run{zero_options(map, setting, training), {}, {}, {}};
  const std::int64_t batch = samples_per_replica(setting, setting.workers(), run.options.micro_batches);
  const std::int64_t micro_batch = batch / run.options.micro_batches;

  Plan plan;
  plan.endpoints = setting.devices;
  plan.workers = plan.devices = setting.workers();
  plan.summed_gradients = plan.workers * run.options.micro_batches;
  plan.communicators.push_back(
      communicator(setting.platform, plan.endpoints, first_ranks(plan.workers), plan.workers));
  apply(read_communication(map), plan.communicators.back());
  auto [workload, source] = make_workload(setting.model, setting.times(micro_batch), training.compute_factor);
  const Workload whole = workload;
  share_updates(setting, training.compute_factor, workload.median);
  for (auto& sample : workload.samples) share_updates(setting, training.compute_factor, sample);
  workload.buckets = gradient_buckets(gradient_arrays(setting.model), training.element(), run.options.bucket);
  workload.input = micro_batch * setting.sample_size;
  for (const Bucket& one : workload.buckets) {
    run.scatters.push_back(add_collective(plan, Collective::Kind::reduce_scatter, Array::gradients, one));
    run.gathers.push_back(add_collective(plan, Collective::Kind::all_gather, Array::parameters, one));
    const bool scattered = run.options.stage > 1 && run.scatters.back().exists();
    run.arrays.push_back((scattered ? 1.0 / plan.workers : 1.0) * array_work(whole, one.layers, 1));
  }
  plan.workloads.push_back(std::move(workload));
  plan.partition.shards_parameters = run.options.stage == 3;

  MemoryOptions memory = memory_options(setting, training, micro_batch);
  memory.zero = static_cast<MemoryOptions::Zero>(run.options.stage);
  memory.zero_ways = setting.workers();
  if (run.options.recompute) memory.recomputation = MemoryOptions::Recomputation::blocks;
  Memory needed = training_memory(setting.model, memory);
  if (run.options.stage == 3 && plan.workers > 1)
    add_gathered(plan.workloads.front().buckets, training.element().value, needed);
  finish_plan(setting, training,
              {std::move(source), batch, static_cast<double>(batch) * setting.workers(), needed,
               no_arithmetic(setting.model, training, run.options), run.options.micro_batches},
              plan);
  note_ineffective_options(map, run.options, plan);
  plan.roles.push_back({"worker", RankId(0), setting.workers(), 0, true,
                        [run = std::make_shared<const ZeroRun>(std::move(run))](Worker& worker) {
                          return zero(worker, *run);
                        }});
  return plan;
}

}  // namespace

double shared_update(double seconds, double launches, int ways) {
  const double fixed = std::min(seconds, launches);
  return fixed + (seconds - fixed) / ways;
}

Strategy zero_strategy() {
  return {
      "zero",
      "data-parallel SGD; the workers partition optimizer state, gradients or parameters (stages 1 to 3)",
      "S. Rajbhandari et al., ZeRO: memory optimizations toward training trillion parameter models, SC 2020",
      read_zero,
      zero_keys(),
      "{kind: zero, stage: 2}",
      "small-cnn",
      {"fsdp"}};
}

}  // namespace stepcast
