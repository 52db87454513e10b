#pragma once

#include <functional>

#include "models/model.hpp"
#include "models/trace.hpp"
#include "report/results.hpp"
#include "strategies/plan.hpp"

namespace stepcast {

/// What a message of so many bytes costs the core of the rank that sends it, and as much the one that
/// receives it: copies out of and into tensors and letters, and the thread that carries them. From the rows
/// `message_host` of measured links; 0 where there are none.
Seconds message_host_time(const Results& links, Bytes size);

/// What a core does besides a layer: in every sample of the forward pass of the first layer from it upwards
/// that has one, and of the backward pass of the first from it downwards.
void add_host_time(Trace& trace, int layer, Seconds forward, Seconds backward);

/// The trace of a whole network with what stages' messages cost their cores beside it: at each cut, the
/// layers on both sides send and receive values in the forward pass, and error signals in the backward pass.
Trace with_messages(Trace trace, const Model& model, const NetworkSharing& sharing,
                    const std::function<Seconds(Bytes)>& host_time);

}  // namespace stepcast
