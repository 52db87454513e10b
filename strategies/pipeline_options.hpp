#pragma once

#include "models/stages.hpp"
#include "strategies/group_plan.hpp"
#include "strategies/pipeline_turns.hpp"

namespace stepcast {

struct PipelineOptions {
  GroupOptions group;
  int stages = 1, tensor = 1;
  PipelineOrder order = PipelineOrder::one_forward_one_backward;
  int chunks = 1;  ///< of layers, that each stage has
  int zero = 0;    ///< 1: optimizer state dealt out over the replicas, 2: gradients too
};

PipelineOptions read_pipeline_options(const YamlMap& map);

/// Where each run of layers begins, a chunk of a stage each: at the named layers (`cuts`), or so that the
/// slowest run takes least.
Stages cut_into_runs(const YamlMap& map, const Setting& setting, const Trace& times, int runs);

/// What the ranks of the plan have of the network, and why kernels cannot run that, if they cannot.
NetworkSharing pipeline_sharing(const Model& model, const PipelineOptions& options, const Stages& cuts,
                                const GroupPlan& groups);

}  // namespace stepcast
