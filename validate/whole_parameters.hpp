#pragma once

#include "strategies/plan.hpp"
#include "validate/checkpoint.hpp"
#include "validate/transport.hpp"

namespace stepcast {

/// The network's own, of what the ranks of the first group have of its shared layers: on rank 0, nothing on
/// others. All of that group call it.
/// @param own  of this rank's part, array after array
Parameters whole_parameters(Transport& transport, const Model& model, const NetworkSharing& sharing,
                            const Parameters& own);

/// The same of the stages of the first replica; only its ranks call it.
Parameters parameters_of_stages(Transport& transport, const Model& model, const Plan& plan,
                                const Parameters& own);

/// What the rank at `place` has of the whole network's.
Parameters parameters_of_part(const Parameters& whole, const Model& model, const NetworkSharing& sharing,
                              int place);

}  // namespace stepcast
