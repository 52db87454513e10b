#include "strategies/data_parallel/synchronous.hpp"

#include <algorithm>
#include <deque>
#include <iterator>
#include <map>
#include <vector>

#include "core/fields.hpp"
#include "models/cost/memory_options.hpp"
#include "models/cost/roofline.hpp"
#include "strategies/compression/gradient_compression.hpp"
#include "strategies/options/strategy.hpp"
#include "strategies/plan/buckets.hpp"
#include "strategies/plan/plan.hpp"
#include "strategies/program/program.hpp"

namespace stepcast {
namespace {

/// Runs of layers that end where a pass must wait for synchronized statistics.
std::vector<LayerRange> statistics_segments(const std::vector<CollectiveId>& statistics, LayerRange layers) {
  std::vector<LayerRange> segments;
  int first = layers.first;
  for (int layer = layers.first; layer < layers.last; ++layer) {
    if (!statistics[layer].exists()) continue;
    segments.push_back({first, layer + 1});
    first = layer + 1;
  }
  if (first < layers.last) segments.push_back({first, layers.last});
  return segments;
}

/// Collective of the statistics of a segment's last layer, if there is one.
CollectiveId statistics_after(const std::vector<CollectiveId>& statistics, LayerRange segment) {
  return statistics[segment.last - 1];
}

SubProgram forward_pass(Worker& worker, const SynchronousRun& run, LayerRange layers) {
  for (const LayerRange& segment : statistics_segments(run.statistics, layers)) {
    co_await worker.forward(segment);
    const CollectiveId statistics = statistics_after(run.statistics, segment);
    if (statistics.exists()) co_await worker.collective(statistics);
  }
}

SubProgram backward_pass(Worker& worker, const SynchronousRun& run, LayerRange layers) {
  const std::vector<LayerRange> segments = statistics_segments(run.statistics, layers);
  for (auto segment = segments.rbegin(); segment != segments.rend(); ++segment) {
    co_await worker.backward(*segment);
    const CollectiveId statistics = statistics_after(run.statistics, *segment);
    if (statistics.exists()) co_await worker.collective(statistics);
  }
}

/// Starts the all-reduces of all buckets.
std::vector<Pending> start_sums(Worker& worker) {
  std::vector<Pending> sums;
  for (const Bucket& bucket : worker.workload().buckets) {
    if (bucket.sum.exists()) sums.push_back(worker.start_collective(bucket.sum));
  }
  return sums;
}

}  // namespace

Program synchronous(Worker& worker, const SynchronousRun& run) {
  const Synchronous& options = run.options;
  const Workload& workload = worker.workload();
  const LayerRange all{0, workload.layers()};
  std::deque<Pending> loads;
  for (int ahead = 0; ahead < options.prefetch; ++ahead) loads.push_back(worker.start_load(workload.input));

  for (int step = 0; step < options.steps; ++step) {
    if (options.step_overhead.value > 0) co_await worker.pause(options.step_overhead);
    std::vector<Pending> sums;
    for (int micro_batch = 0; micro_batch < options.micro_batches; ++micro_batch) {
      loads.push_back(worker.start_load(workload.input));
      co_await worker.finished(std::move(loads.front()));
      loads.pop_front();

      if (options.synchronized_batch_norm) {
        co_await forward_pass(worker, run, all);
      } else {
        co_await worker.forward(all);
      }
      const bool last = micro_batch + 1 == options.micro_batches;
      for (std::size_t i = 0; i < workload.buckets.size(); ++i) {  // last layer first
        const Bucket& bucket = workload.buckets[i];
        if (options.recompute) co_await worker.forward(bucket.layers);
        if (options.synchronized_batch_norm) {
          co_await backward_pass(worker, run, bucket.layers);
        } else {
          co_await worker.backward(bucket.layers);
        }
        if (options.micro_batches > 1)  // 1. g
          co_await worker.local(sum_micro_batch(bucket,
                                                place_of_micro_batch(micro_batch, options.micro_batches),
                                                array_work(workload, bucket.layers, 1)));
        if (!last || !bucket.sum.exists()) continue;
        if (!run.quantize.empty()) co_await worker.local(run.quantize[i]);
        if (!run.pack.empty()) co_await worker.local(run.pack[i]);
        if (options.host_synchronization.value > 0) co_await worker.pause(options.host_synchronization);
        if (options.overlap) sums.push_back(worker.start_collective(bucket.sum));  // 2. G
      }
    }
    if (!options.overlap) std::ranges::move(start_sums(worker), std::back_inserter(sums));
    for (Pending& sum : sums) co_await worker.finished(std::move(sum));
    if (!run.quantize.empty()) co_await worker.local(run.restore);
    if (run.unpack.duration.value > 0) co_await worker.local(run.unpack);
    if (options.reads_gradients) worker.synchronize();
    co_await worker.optimizer_step();  // 3. w
    worker.end_step();
  }
}

namespace {

CollectiveId add_sum(Plan& plan, const Buffer& buffer) {
  return add(plan, {Collective::Kind::all_reduce, CommunicatorId{0}, buffer, nullptr});
}

Arithmetic quantize_gradients(const GradientCompression& compression, const Bucket& bucket, int workers) {
  return [codec = compression.codec(workers), elements = bucket.elements](Arrays& arrays) {
    arrays.compressed(codec, elements).quantize(arrays.of(Array::gradients, elements));
  };
}

/// Restores the sums of all buckets.
Arithmetic restore_gradients(const Plan& plan) {
  std::vector<Buffer> sums;
  for (const Collective& one : plan.collectives) {
    if (plan.workers > 1 && one.buffer.codec.kind != Compression::none) sums.push_back(one.buffer);
  }
  if (sums.empty()) return nullptr;
  return [sums](Arrays& arrays) {
    for (const Buffer& sum : sums)
      arrays.compressed(sum.codec, sum.elements).restore(arrays.of(Array::gradients, sum.elements));
  };
}

/// Chooses the rank of a node that sums each buffer with `inside_node: flat`: the largest buffers first, each
/// to the rank that has the fewest bytes so far. Source: MXNet, src/kvstore/comm.h,
/// CommDevice::InitMergeBuffer.
void choose_roots(Plan& plan) {
  std::vector<Collective*> sums;
  for (Collective& one : plan.collectives) sums.push_back(&one);
  std::ranges::stable_sort(sums, std::ranges::greater{},
                           [](const Collective* one) { return one->buffer.size.value; });
  std::vector<double> bytes(plan.communicators.front().ranks_per_node);
  for (Collective* one : sums) {
    const auto least = std::ranges::min_element(bytes);
    one->root = least - bytes.begin();
    *least += one->buffer.size.value;
  }
}

/// Adds the all-reduce of every bucket, compressed or not.
void add_gradient_sums(Plan& plan, Workload& workload, SynchronousRun& run) {
  const GradientCompression& compression = run.options.compression;
  for (Bucket& bucket : workload.buckets) {
    const Buffer buffer{Array::gradients, bucket.elements, bucket.gradient};
    if (compression.kind == Compression::none) {
      if (bucket.gradient.value == 0) continue;
      bucket.sum = add_sum(plan, buffer);
      if (plan.workers > 1) plan.collectives[bucket.sum.index()].wait = bucket.wait;
      continue;
    }
    const auto codec = compression_seconds(compression, bucket.elements.size(), plan.workers);
    const bool travels = plan.workers > 1 && bucket.elements.size() > 0;
    run.quantize.push_back({"quantize", codec.quantize,
                            travels ? quantize_gradients(compression, bucket, plan.workers) : nullptr});
    run.restore.duration = run.restore.duration + codec.restore;
    if (bucket.gradient.value == 0) continue;
    bucket.sum = add(plan, compressed_sum(compression, bucket.elements, plan.workers));
  }
  run.restore.name = "restore";
  run.restore.run = restore_gradients(plan);
}

/// Adds the copies of every bucket before and after its sum. Copies to the host run beside the device's work.
void add_bucket_copies(const Workload& workload, Plan& plan, SynchronousRun& run) {
  using Copies = Synchronous::BucketCopies;
  const Copies copies = run.options.bucket_copies;
  if (copies == Copies::none || plan.workers == 1) return;
  run.unpack.name = "unpack";
  for (const Bucket& bucket : workload.buckets) {
    const Seconds once = bucket.gradient / run.options.copy_rate;
    run.unpack.duration = run.unpack.duration + once;
    if (copies == Copies::device) run.pack.push_back({"pack", once, nullptr});
    if (copies == Copies::device || !bucket.sum.exists()) continue;
    Seconds& wait = plan.collectives[bucket.sum.index()].wait;
    wait = wait + once;
  }
}

/// Workers of the fullest server.
int most_workers(const Platform& platform, const Plan& plan) {
  std::map<int, int> workers;  // by server
  int most = 0;
  for (const int endpoint : plan.endpoints) most = std::max(most, ++workers[platform.node_of(endpoint)]);
  return most;
}

/// Spreads the host work of a step, for all workers of a server, over its passes by their times.
void add_host_work(int most, const Synchronous& options, Workload& workload) {
  double passes = 0;
  for (const LayerSeconds& layer : workload.median)
    passes += options.micro_batches * ((options.recompute ? 2 : 1) * layer.forward + layer.backward);
  if (passes == 0) return;
  workload.host.resize(workload.median.size());
  for (std::size_t i = 0; i < workload.host.size(); ++i) {
    workload.host[i].forward += most * options.host_work.value / passes * workload.median[i].forward;
    workload.host[i].backward += most * options.host_work.value / passes * workload.median[i].backward;
  }
}

/// Says why the plan cannot run for real, where a library's waits and copies are simulated.
std::string simulated_only(const Plan& plan, const SynchronousRun& run) {
  if (run.unpack.duration.value > 0) return "copies of strategy.bucket_copies are simulated";
  if (run.options.host_turn.value > 0) return "strategy.host_turn and input_rate are simulated";
  const bool waits = std::ranges::any_of(plan.collectives, [](auto& one) { return one.wait.value > 0; });
  return waits || run.options.host_work.value > 0 ? "waits of strategy.cycle and host_work are simulated"
                                                  : "";
}

const Fields<Synchronous>& synchronous_fields() {
  using Copies = Synchronous::BucketCopies;
  static const Words<Copies> copies{
      {"none", Copies::none}, {"device", Copies::device}, {"host", Copies::host}};
  static const Fields<Synchronous> fields{
      field("host_work", &Synchronous::host_work, duration(),
            "host work of a step, which runs at the same time as the devices' work; the workers of a server "
            "take turns"),
      field("host_turn", &Synchronous::host_turn, duration(),
            "host time of a step for each device of a server, which its one process serves in turn while all "
            "of them wait"),
      field("input_rate", &Synchronous::input_rate, bandwidth(),
            "rate at which that process copies each device's input (fp32), in turn, before the step"),
      details({field("bucket_copies", &Synchronous::bucket_copies, choice(copies),
                     "copies of each bucket before and after its sum: into one buffer and back, or to the "
                     "host and back"),
               field("overlap", &Synchronous::overlap, boolean(),
                     "whether all-reduces run during the rest of the backward pass")}),
      field("accumulation", &Synchronous::micro_batches, integer(1, 1'000'000), "micro-batches in a step"),
      field("fp32_gradients", &Synchronous::fp32_gradients, boolean(),
            "precision: mixed: whether gradients are summed in fp32, as autocast leaves them"),
      field("synchronized_batch_norm", &Synchronous::synchronized_batch_norm, boolean(),
            "whether batch norm uses the statistics of all workers"),
      field("recompute", &Synchronous::recompute, boolean(),
            "whether activations are computed again in the backward pass"),
      field("host_synchronization", &Synchronous::host_synchronization, duration(),
            "time for which the host waits for the device before each all-reduce"),
      field("host_swap", &Synchronous::host_swap, bandwidth(),
            "bandwidth from a device to its host, which stores activations until the backward pass")};
  return fields;
}

Synchronous synchronous_options(const YamlMap& map, const Setting& setting, const TrainingOptions& training) {
  Synchronous options;
  read_fields(map, synchronous_fields(), options);
  options.steps = setting.steps;
  options.prefetch = setting.prefetch;
  options.step_overhead = training.step_overhead;
  options.reads_gradients = training.mixed;
  options.compression = read_compression_options(map, setting);
  options.copy_rate = options.bucket_copies == Synchronous::BucketCopies::host
                          ? setting.platform.node.device.bandwidth
                          : 0.5 * kStreamingShare * setting.device.memory_bandwidth;  // read and written
  if (options.host_swap && options.recompute)
    map.at("host_swap").refuse("not valid with recompute: true; give only one of them");
  return options;
}

std::string no_arithmetic(const Model& model, const TrainingOptions& training, const Synchronous& options) {
  if (training.mixed) return "precision: mixed";
  if (options.synchronized_batch_norm) return "synchronized_batch_norm";
  if (options.recompute && has_dropout(model))
    return "recompute (dropout would drop other elements the second time)";
  return {};
}

/// Notes keys that have no effect with the other options.
void note_ineffective_options(const YamlMap& map, const Synchronous& options, const Model& model,
                              Plan& plan) {
  const bool top_k = options.compression.kind == Compression::top_k;
  note_ineffective_communication(map, top_k ? "with compression: top_k" : "", true, plan);
  note_ineffective_compression(map, plan.ineffective_keys);
  const auto has_statistics = [](const Layer& layer) { return layer.kind == LayerKind::batch_norm; };
  if (std::ranges::none_of(model.layers, has_statistics))
    note_ineffective(map, {"synchronized_batch_norm"}, "on a network without batch norm",
                     plan.ineffective_keys);
  if (!options.reads_gradients)
    note_ineffective(map, {"fp32_gradients"}, "with precision: f32", plan.ineffective_keys);
  if (plan.workers == 1) return;
  const auto& buckets = plan.workloads.front().buckets;
  const auto sums = std::ranges::count_if(buckets, [](const Bucket& one) { return one.sum.exists(); });
  if (sums == 1)
    note_ineffective(map, {"overlap", "compute_slowdown"}, "with a single bucket", plan.ineffective_keys);
  if (!options.overlap)
    note_ineffective(map, {"compute_slowdown"}, "with overlap: false", plan.ineffective_keys);
  const bool cycles = map.has("cycle") && map.at("cycle").seconds().value > 0;
  if (cycles) note_ineffective(map, {"first_bucket"}, "with cycle", plan.ineffective_keys);
  if (!cycles) note_ineffective(map, {"negotiation", "host_lead"}, "without cycle", plan.ineffective_keys);
}

}  // namespace

Plan synchronous_plan(const Platform& platform, std::vector<int> endpoints, Workload workload,
                      Synchronous options, const CommunicationOptions& communication) {
  const int workers = endpoints.size();
  SynchronousRun run{std::move(options), {}, {}, {}, {}, {}};
  Plan plan;
  plan.endpoints = std::move(endpoints);
  plan.workers = plan.devices = workers;
  plan.summed_gradients = workers * run.options.micro_batches;
  plan.communicators.push_back(communicator(platform, plan.endpoints, first_ranks(workers), workers));
  apply(communication, plan.communicators.back());
  add_gradient_sums(plan, workload, run);
  choose_roots(plan);
  add_bucket_copies(workload, plan, run);
  for (const Bytes& statistics : workload.statistics) {
    const bool summed = run.options.synchronized_batch_norm && statistics.value > 0;
    run.statistics.push_back(summed ? add_sum(plan, {Array::statistics, {}, statistics}) : CollectiveId{});
  }
  const int most = most_workers(platform, plan);
  if (run.options.host_work.value > 0) add_host_work(most, run.options, workload);
  run.options.step_overhead = run.options.step_overhead + most * run.options.host_turn;
  plan.simulated_only = simulated_only(plan, run);
  plan.workloads.push_back(std::move(workload));
  plan.roles.push_back({"worker", RankId(0), workers, 0, true,
                        [run = std::make_shared<const SynchronousRun>(std::move(run))](Worker& worker) {
                          return synchronous(worker, *run);
                        }});
  return plan;
}

namespace {

const Keys& synchronous_keys() {
  static const Keys keys = joined_keys({training_keys(), communication_keys(), compression_keys(),
                                        gradient_bucket_keys(), synchronous_fields().keys()});
  return keys;
}

Plan read_synchronous(const YamlValue& value, const Setting& setting) {
  const YamlMap map = read_map(value, synchronous_keys());
  const TrainingOptions training = read_training_options(map);
  Synchronous options = synchronous_options(map, setting, training);
  const std::int64_t batch = samples_per_replica(setting, setting.workers(), options.micro_batches);
  const std::int64_t micro_batch = batch / options.micro_batches;
  if (options.input_rate) {
    const Bytes input{4 * input_elements(setting.model) * static_cast<double>(batch)};  // fp32
    options.host_turn = options.host_turn + input / *options.input_rate;
  }
  auto [workload, source] = make_workload(setting.model, setting.times(micro_batch), training.compute_factor);
  workload.buckets =
      read_gradient_buckets(map, setting, options.fp32_gradients ? Bytes{4} : training.element(), workload);
  workload.input = micro_batch * setting.sample_size;
  for (std::size_t i = 0; i < setting.model.layers.size(); ++i)
    workload.statistics[i] = batch_norm_statistics(setting.model.layers[i]);
  MemoryOptions memory = memory_options(setting, training, micro_batch);
  memory.bucket_copies = setting.memory.bucket_copies && setting.workers() > 1;
  if (options.recompute) memory.recomputation = MemoryOptions::Recomputation::blocks;
  if (options.host_swap) {
    memory.swap = true;
    swap_to_host(setting.model, {*options.host_swap, training.element(), memory}, workload);
  }
  Plan plan = synchronous_plan(setting.platform, setting.devices, std::move(workload), options,
                               read_communication(map));
  if (map.has("compression")) {
    const auto& buckets = plan.workloads.front().buckets;
    plan.figures = [figures = compression_figures(options.compression, buckets, plan.workers)](
                       const Records&, double) { return figures; };
  }
  finish_plan(setting, training,
              {std::move(source), batch, static_cast<double>(batch) * setting.workers(),
               training_memory(setting.model, memory), no_arithmetic(setting.model, training, options),
               options.micro_batches, options.compression.kind != Compression::none},
              plan);
  if (!options.compression.flag.empty()) plan.flags.push_back(options.compression.flag);
  note_ineffective_options(map, options, setting.model, plan);
  return plan;
}

}  // namespace

Strategy synchronous_strategy() {
  return {.kind = "synchronous",
          .what = "data-parallel SGD: all workers sum their gradients in every step",
          .source =
              "P. Goyal et al., Accurate, large minibatch SGD: training ImageNet in 1 hour, arXiv:1706.02677",
          .plan = read_synchronous,
          .keys = synchronous_keys(),
          .example = "{kind: synchronous}",
          .example_model = "small-cnn",
          .other_names = {"ddp", "data_parallel"}};
}

}  // namespace stepcast
