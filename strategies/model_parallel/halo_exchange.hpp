#pragma once

#include <memory>

#include "models/cost/device.hpp"
#include "models/partition/spatial_partition.hpp"
#include "strategies/collectives/schedule.hpp"

namespace stepcast {

/// The halo exchange of one layer among the devices that share a sample.
struct HaloExchange {
  std::shared_ptr<const Schedule> schedule;  ///< null: no device needs anything
  double elements = 0;                       ///< elements of the schedule's whole buffer, for one sample
  double busiest = 0;                        ///< largest number of elements that one device receives
};

/// The exchange has a phase for each dimension, the last dimension first. A phase has the messages of all
/// devices; those of one direction all have the size of the largest.
/// @param received  messages to each device of the grid, from device_halos
HaloExchange halo_exchange(const Parts& parts, const std::vector<std::vector<HaloMessage>>& received);

/// Time of a device to pack the halos that it sends into one buffer, or to unpack those that it received.
/// Each byte is read and written once.
Seconds packing_seconds(const Device& device, Bytes halo);

}  // namespace stepcast
