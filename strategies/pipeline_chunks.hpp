#pragma once

#include "strategies/pipeline.hpp"
#include "strategies/pipeline_options.hpp"

namespace stepcast {

/// Stage `number` of a pipeline whose runs of layers begin at `cuts`: its chunks with the collectives of
/// their layers, which are added to the plan, and the turns in which it goes through them.
PipelineStage make_stage(const Setting& setting, const PipelineOptions& options, int number,
                         const Stages& cuts, GroupPlan& groups);

}  // namespace stepcast
