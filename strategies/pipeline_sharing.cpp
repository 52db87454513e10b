#include <fmt/format.h>

#include "models/shared_part.hpp"
#include "strategies/pipeline_options.hpp"

namespace stepcast {
namespace {

/// Why kernels cannot run stages whose layers ranks share; empty where they can.
std::string tensor_stage_problem(const Model& model, const ShardedModel& sharded, const Stages& cuts) {
  for (const int cut : cuts) {
    if (cut == 0 || cut == static_cast<int>(model.layers.size())) continue;
    for (const int source : crossing_sources(model, cut)) {
      const auto i = static_cast<std::size_t>(source);
      if (source >= 0 && sharded.part.layers[i].output != model.layers[i].output)
        return fmt::format("a cut behind layer {}, whose output ranks share", model.layers[i].name);
    }
  }
  return part_problem(sharded);
}

}  // namespace

NetworkSharing pipeline_sharing(const Model& model, const PipelineOptions& options, const Stages& cuts,
                                const GroupPlan& groups) {
  NetworkSharing sharing;
  sharing.form = NetworkSharing::Form::stages;
  for (std::size_t i = 0; i + 1 < cuts.size(); ++i) sharing.stages.push_back({cuts[i], cuts[i + 1]});
  sharing.ways = options.tensor;
  sharing.micro_batch = groups.micro_batch;
  sharing.micro_batches = options.group.micro_batches;
  sharing.sums_every_micro_batch = options.zero == 2;
  for (int stage = 0; options.group.recompute && stage < options.stages; ++stage)
    sharing.recomputed.push_back(
        turns(options.order, stage, options.stages, options.group.micro_batches, options.chunks));
  if (options.tensor > 1) sharing.simulated_only = tensor_stage_problem(model, groups.sharded, cuts);
  if (options.group.recompute && has_dropout(model)) sharing.simulated_only = kDropsOthers;
  if (options.group.training.mixed) sharing.simulated_only = "activations of 2 bytes";
  return sharing;
}

}  // namespace stepcast
