#pragma once

#include <memory>
#include <string>

#include "gpu/nccl_group.hpp"
#include "validate/parcels.hpp"

namespace stepcast {

/// A communicator of two ranks: number 0 sends, 1 receives. A pair that sends both ways has two, so that what
/// goes one way never waits for what comes the other way.
/// @throws RankLost, and InputError where this program was built without NCCL
std::unique_ptr<DeviceLink> join_nccl_link(const NcclEnd& end, const std::string& unique_id);

}  // namespace stepcast
