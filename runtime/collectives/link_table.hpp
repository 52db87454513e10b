#pragma once

#include <vector>

#include "platforms/platform.hpp"
#include "strategies/collectives/schedule.hpp"

namespace stepcast {

/// Measured time of one message of a given size.
struct MessageTime {
  Bytes size;
  Seconds time;
};

/// Cost of messages over one link, as platform files state it: time = latency + overhead + size /
/// (bandwidth_factor x bandwidth), with overhead and factor by size.
struct LinkTable {
  Seconds latency;
  BytesPerSecond bandwidth;
  std::vector<MessageCost> costs;  ///< by rising size; the last row has no upper limit
};

/// Fits a table to measured times. At every measured size it gives the measured time; in between it
/// interpolates linearly. The latency is the time of the smallest size, and the bandwidth is the highest that
/// any size reaches beyond the latency. A time below that of a smaller size is raised to it. A line that
/// would begin below the latency, or rise less than the bandwidth allows, passes through its upper size only.
/// Sizes beyond the largest measured one take time in proportion to it.
/// @throws std::invalid_argument for fewer than two different sizes, or a time that is not positive
LinkTable fitted_link_table(std::vector<MessageTime> times);

/// Time of one message.
Seconds message_time(const LinkTable& table, Bytes size);

/// Time of a schedule alone on the network, if each rank has a link of its own in each direction and all
/// ranks execute the rounds in lock step.
Seconds schedule_time(const Schedule& schedule, const LinkTable& links, Bytes buffer);

}  // namespace stepcast
