#pragma once

#include <string>

#include "models/layer_times/trace.hpp"
#include "models/network/model.hpp"
#include "models/pytorch_profile/attribution.hpp"
#include "models/pytorch_profile/layer_match.hpp"

namespace stepcast {

/// The trace of a profile: every step of the profile is a sample of every layer and pass. The optimizer's
/// time is shared out by parameters; sums of gradients go to the layer whose output has several readers, as
/// in derived traces. What is approximate is said in the trace's flags.
Trace profile_trace(const Profile& profile, const Attribution& attribution, const Model& model,
                    const LayerMatch& match, std::int64_t batch);

}  // namespace stepcast
