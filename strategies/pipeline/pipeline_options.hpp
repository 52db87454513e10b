#pragma once

#include "models/partition/pipeline_stages.hpp"
#include "strategies/model_parallel/group_plan.hpp"
#include "strategies/plan/pipeline_schedule.hpp"

namespace stepcast {

/// Options of a pipeline.
struct PipelineOptions {
  GroupOptions group;
  int stages = 1;
  int tensor = 1;  ///< devices that share the layers of a stage
  PipelineOrder order = PipelineOrder::one_forward_one_backward;
  int chunks = 1;  ///< runs of layers in each stage
  int zero = 0;    ///< 1: the replicas partition the optimizer state, 2: gradients too; 0: neither
};

PipelineOptions read_pipeline_options(const YamlMap& map);

/// First layers of all runs of layers (one for each chunk of each stage): the layers that `cuts` names, or
/// those that make the slowest run fastest.
Stages cut_into_runs(const YamlMap& map, const Setting& setting, const Trace& times, int runs);

}  // namespace stepcast
