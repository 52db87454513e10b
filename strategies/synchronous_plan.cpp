#include <algorithm>

#include "strategies/buckets.hpp"
#include "strategies/communicator.hpp"
#include "strategies/compressed_gradient.hpp"
#include "strategies/compression_figures.hpp"
#include "strategies/host_swap.hpp"
#include "strategies/synchronous.hpp"

namespace stepcast {
namespace {

/// Sum and sum of squares of every channel, fp32.
Bytes batch_norm_statistics(const Layer& layer) {
  if (layer.kind != LayerKind::batch_norm) return {};
  return {2.0 * 4 * static_cast<double>(layer.output.front())};
}

int add_sum(Plan& plan, const Buffer& buffer) {
  plan.collectives.push_back({Collective::Kind::all_reduce, 0, buffer, nullptr});
  return static_cast<int>(plan.collectives.size()) - 1;
}

Arithmetic quantize_gradients(const GradientCompression& compression, const Bucket& bucket, int workers) {
  return [codec = compression.codec(workers), elements = bucket.elements](Arrays& arrays) {
    arrays.compressed(codec, elements).quantize(arrays.of(Array::gradients, elements));
  };
}

/// Of all buckets.
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

/// Every bucket's sum, compressed or not.
void add_gradient_sums(Plan& plan, Workload& workload, Synchronous& options) {
  const GradientCompression& compression = options.compression;
  for (Bucket& bucket : workload.buckets) {
    const Buffer buffer{Array::gradients, bucket.elements, bucket.gradient};
    if (compression.kind == Compression::none) {
      if (bucket.gradient.value > 0) bucket.sum = add_sum(plan, buffer);
      continue;
    }
    const auto codec = compression_seconds(compression, bucket.elements.size(), plan.workers);
    const bool travels = plan.workers > 1 && bucket.elements.size() > 0;
    options.quantize.push_back({"quantize", codec.quantize,
                                travels ? quantize_gradients(compression, bucket, plan.workers) : nullptr});
    options.restore.duration = options.restore.duration + codec.restore;
    if (bucket.gradient.value == 0) continue;
    bucket.sum = static_cast<int>(plan.collectives.size());
    plan.collectives.push_back(compressed_sum(compression, bucket.elements, plan.workers));
  }
  options.restore.name = "restore";
  options.restore.run = restore_gradients(plan);
}

Synchronous read_options(const YamlMap& map, const Setting& setting, const TrainingOptions& training) {
  Synchronous run;
  run.steps = setting.steps;
  run.prefetch = setting.prefetch;
  run.step_overhead = training.step_overhead;
  if (const auto overlap = map.maybe("overlap")) run.overlap = overlap->boolean();
  if (const auto times = map.maybe("accumulation"))
    run.micro_batches = static_cast<int>(times->integer(1, 1'000'000));
  if (const auto sync = map.maybe("synchronized_batch_norm")) run.synchronized_batch_norm = sync->boolean();
  if (const auto again = map.maybe("recompute")) run.recompute = again->boolean();
  run.compression = read_compression_options(map, setting);
  if (const auto wait = map.maybe("host_synchronization")) run.host_synchronization = wait->seconds();
  return run;
}

MemoryOptions memory_options(const Setting& setting, const Synchronous& run, const TrainingOptions& training,
                             std::int64_t micro_batch) {
  MemoryOptions memory = setting.memory;
  memory.batch = micro_batch;
  if (training.mixed) memory.precision = MemoryOptions::Precision::mixed;
  if (run.recompute) memory.recomputation = MemoryOptions::Recomputation::blocks;
  return memory;
}

bool has_dropout(const Model& model) {
  return std::ranges::any_of(model.layers,
                             [](const Layer& layer) { return layer.kind == LayerKind::dropout; });
}

std::string no_arithmetic(const Model& model, const TrainingOptions& training, const Synchronous& run) {
  if (training.mixed) return "precision: mixed";
  if (run.synchronized_batch_norm) return "synchronized_batch_norm";
  if (run.recompute && has_dropout(model)) return "recompute (dropout would drop others the second time)";
  return {};
}

/// Keys that do nothing beside the others.
void note_idle_options(const YamlMap& map, const Synchronous& run, const Model& model, Plan& plan) {
  const bool top_k = run.compression.kind == Compression::top_k;
  note_idle_communication(map, top_k ? "with compression: top_k" : "", true, plan);
  note_idle_compression(map, plan.idle_keys);
  const auto has_statistics = [](const Layer& layer) { return layer.kind == LayerKind::batch_norm; };
  if (std::ranges::none_of(model.layers, has_statistics))
    note_idle(map, {"synchronized_batch_norm"}, "on a network without batch norm", plan.idle_keys);
  if (plan.workers == 1) return;
  const auto& buckets = plan.workloads.front().buckets;
  const auto sums = std::ranges::count_if(buckets, [](const Bucket& one) { return one.sum >= 0; });
  if (sums == 1) note_idle(map, {"overlap", "compute_slowdown"}, "with a single bucket", plan.idle_keys);
  if (!run.overlap) note_idle(map, {"compute_slowdown"}, "with overlap: false", plan.idle_keys);
}

}  // namespace

Plan synchronous_plan(const Platform& platform, std::vector<int> endpoints, Workload workload,
                      Synchronous options, const CommunicationOptions& communication) {
  const int workers = static_cast<int>(endpoints.size());
  Plan plan;
  plan.endpoints = std::move(endpoints);
  plan.workers = plan.devices = workers;
  plan.summed_gradients = workers * options.micro_batches;
  plan.communicators.push_back(communicator(platform, plan.endpoints, first_ranks(workers), workers));
  apply(communication, plan.communicators.back());
  add_gradient_sums(plan, workload, options);
  for (const Bytes& statistics : workload.statistics) {
    const bool summed = options.synchronized_batch_norm && statistics.value > 0;
    options.statistics.push_back(summed ? add_sum(plan, {Array::statistics, {}, statistics}) : -1);
  }
  plan.workloads.push_back(std::move(workload));
  plan.roles.push_back({"worker", 0, workers, 0, true,
                        [options = std::make_shared<const Synchronous>(std::move(options))](Worker& worker) {
                          return synchronous(worker, *options);
                        }});
  return plan;
}

Plan read_synchronous(const YamlValue& value, const Setting& setting) {
  const YamlMap map = value.map(joined_keys({training_keys(),
                                             communication_keys(),
                                             compression_keys(),
                                             {"bucket", "overlap", "accumulation", "synchronized_batch_norm",
                                              "recompute", "host_synchronization", "host_swap"}}));
  const TrainingOptions training = read_training_options(map);
  const Synchronous run = read_options(map, setting, training);
  const std::int64_t batch = samples_per_replica(setting, setting.workers(), run.micro_batches);
  const std::int64_t micro_batch = batch / run.micro_batches;

  Plan source;  // of the times
  Workload workload =
      make_workload(setting.model, setting.times(micro_batch), training.compute_factor, source);
  Bytes bucket{26214400};
  if (const auto size = map.maybe("bucket")) bucket = read_bucket(*size);
  workload.buckets = gradient_buckets(gradient_arrays(setting.model), training.element(), bucket);
  workload.input = static_cast<double>(micro_batch) * setting.sample_size;
  for (std::size_t i = 0; i < setting.model.layers.size(); ++i) {
    workload.statistics[i] = batch_norm_statistics(setting.model.layers[i]);
  }
  MemoryOptions memory = memory_options(setting, run, training, micro_batch);
  if (const auto swap = map.maybe("host_swap")) {
    if (run.recompute)
      swap->refuse("activations wait on the host or are computed again; leave one of both out");
    memory.swap = true;
    swap_to_host(setting.model, {swap->bytes_per_second(), training.element(), memory}, workload);
  }

  Plan plan =
      synchronous_plan(setting.platform, setting.devices, std::move(workload), run, read_communication(map));
  if (map.has("compression")) {
    const auto& buckets = plan.workloads.front().buckets;
    plan.figures = [figures = compression_figures(run.compression, buckets, plan.workers)](
                       const Records&, double) { return figures; };
  }
  plan.trace_kind = source.trace_kind;
  plan.flags = source.flags;
  if (!run.compression.flag.empty()) plan.flags.push_back(run.compression.flag);
  plan.no_arithmetic = no_arithmetic(setting.model, training, run);
  plan.compute_slowdown = training.compute_slowdown;
  plan.load_data = setting.sample_size.value > 0;
  plan.batch_per_worker = batch;
  plan.samples_a_step = static_cast<double>(batch) * setting.workers();
  plan.memory = training_memory(setting.model, memory);
  plan.fits = fits(plan.memory, setting.device);
  plan.why_not = why_not(plan.memory, setting.device);
  note_idle_options(map, run, setting.model, plan);
  return plan;
}

}  // namespace stepcast
