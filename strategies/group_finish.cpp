#include <fmt/format.h>

#include <numeric>

#include "models/activations.hpp"
#include "models/trace_times.hpp"
#include "strategies/group_plan.hpp"

namespace stepcast {
namespace {

Figures figures(int ways, const Records& records) {
  const auto steps = records.find("step");
  const double programs = steps == records.end() ? 1 : static_cast<double>(steps->second.size());
  const auto seconds = [&](const char* what) {
    const auto found = records.find(what);
    return found == records.end()
               ? 0.0
               : std::accumulate(found->second.begin(), found->second.end(), 0.0) / programs;
  };
  return {{"ways", ways},
          {"halo_seconds", seconds("halo")},
          {"exchange_seconds", seconds("exchange")},
          {"statistics_seconds", seconds("statistics")}};
}

/// What is computed again at once: from one checkpoint to the next.
std::vector<LayerRange> stretches(const Model& model) {
  std::vector<LayerRange> ranges;
  int first = 0;
  for (const std::size_t last : checkpoints(model, MemoryOptions::Recomputation::blocks)) {
    ranges.push_back({first, static_cast<int>(last) + 1});
    first = ranges.back().last;
  }
  ranges.push_back({first, static_cast<int>(model.layers.size())});
  return ranges;
}

}  // namespace

Trace part_times(const Setting& setting, const GroupPlan& groups) {
  if (!groups.cut_trace) return setting.part_trace({&groups.sharded.part, groups.batch});
  const Trace& named = setting.named_trace(*groups.cut_trace);
  if (named.batch != groups.micro_batch) {
    groups.cut_trace->refuse(fmt::format("is a trace of batch {}, but a replica works on {} at once",
                                         named.batch, groups.micro_batch));
  }
  check_fits(named, groups.sharded.part);
  return named;
}

void set_verdict(const Setting& setting, const GroupPlan& groups, const Trace& times, const Memory& memory,
                 Plan& plan) {
  plan.trace_kind = times.kind == Trace::Kind::captured ? "captured" : "derived";
  if (groups.ways > 1 && !groups.cut_trace) plan.trace_kind += ", part";
  plan.flags = times.flags;
  plan.compute_slowdown = groups.options.training.compute_slowdown;
  plan.load_data = setting.sample_size.value > 0;
  plan.memory = memory;
  plan.fits = fits(memory, setting.device);
  plan.why_not = why_not(memory, setting.device);
}

Plan finish(const Setting& setting, GroupPlan groups, const Model& in_memory) {
  const GroupOptions& options = groups.options;
  const LayerRange layers{0, static_cast<int>(setting.model.layers.size())};
  std::vector<Bucket> buckets = add_sums(layers, false, groups.replicas, groups);
  for (const Bucket& bucket : add_sums(layers, true, groups.all, groups)) buckets.push_back(bucket);
  const auto beside =
      sums_by_layer(options.overlap ? buckets : std::vector<Bucket>{}, setting.model.layers.size());

  Sharded run;
  run.steps = setting.steps;
  run.micro_batches = options.micro_batches;
  run.prefetch = setting.prefetch;
  run.step_overhead = options.training.step_overhead;
  run.exchange_overhead = options.exchange_overhead;
  run.passes = make_passes(groups.calls, layers, beside, options.halo_overlap);
  if (options.recompute) {
    for (const LayerRange& stretch : stretches(setting.model))
      run.recomputed.push_back(make_passes(groups.calls, stretch, beside, options.halo_overlap));
  }
  for (const Bucket& bucket : buckets) {
    if (!options.overlap && bucket.sum >= 0) run.sums.push_back(bucket.sum);
  }

  const Trace times = part_times(setting, groups);
  Workload workload = pieces_workload(times, layer_costs(groups.sharded.part), setting.device, groups.calls,
                                      options.halo_overlap);
  scale(workload, options.training.compute_factor);
  workload.input = groups.input_share * static_cast<double>(groups.micro_batch) * setting.sample_size;
  for (Bucket& bucket : buckets) bucket.layers = pieces_of(bucket.layers);
  workload.buckets = std::move(buckets);

  Plan plan = std::move(groups.plan);
  plan.sharing = groups.sharing;
  plan.sharing.micro_batch = groups.micro_batch;
  plan.sharing.micro_batches = options.micro_batches;
  plan.workloads.push_back(std::move(workload));
  plan.roles.push_back({"worker", 0, setting.workers(), 0, true,
                        [run = std::make_shared<const Sharded>(std::move(run))](Worker& worker) {
                          return sharded(worker, *run);
                        }});
  set_verdict(setting, groups, times, training_memory(in_memory, groups.memory), plan);
  note_idle_group(groups, "", plan);
  plan.figures = [ways = groups.ways](const Records& records, double) { return figures(ways, records); };
  return plan;
}

}  // namespace stepcast
