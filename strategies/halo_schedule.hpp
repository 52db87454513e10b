#pragma once

#include <memory>

#include "models/device.hpp"
#include "models/halo.hpp"
#include "strategies/collectives/schedule.hpp"

namespace stepcast {

/// The halo exchange of one layer among the devices that share a sample.
struct HaloExchange {
  std::shared_ptr<const Schedule> schedule;  ///< null: nobody needs anything
  double elements = 0;                       ///< of the schedule's whole buffer, one sample
  double busiest = 0;                        ///< elements that the device with most neighbours receives
};

/// @param received  by each device of the grid, as `device_halos` gives it. A phase a dimension, the last
/// first, with
///                  the messages of all devices at once; those of one direction are as large as the largest.
HaloExchange halo_exchange(const Parts& parts, const std::vector<std::vector<HaloMessage>>& received);

/// What a device needs to pack what it sends into one buffer, or to unpack what it received: each byte is
/// read and written once.
Seconds packing_seconds(const Device& device, Bytes halo);

}  // namespace stepcast
