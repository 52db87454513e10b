#pragma once

#include <string>
#include <vector>

#include "platforms/platform.hpp"
#include "report/results/results.hpp"
#include "runtime/ranks/netcluster.hpp"
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

/// Message times from rows of measure_links. On one switch they come from ring all-reduces: S bytes over P
/// ranks are 2 (P - 1) messages of S / P bytes one after the other. With two racks they come from rounds of a
/// ring inside the racks, the mean of a round that adds and one that replaces.
std::vector<MessageTime> message_times(const Results& results, const Cluster& cluster);

/// Measured and predicted all-reduce times of one buffer size.
struct AllReduceTime {
  double bytes = 0;
  std::string algorithm;                            ///< the fastest of stepcast's algorithms
  double measured = 0, predicted = 0, library = 0;  ///< [s]; library 0: not measured
};

/// For each size, the fastest of stepcast's algorithms, its time by the link table, and the library's time.
std::vector<AllReduceTime> all_reduce_times(const Results& results, const LinkTable& links, int ranks);

/// How much ranks of one machine slow each other down, from rows of measure_contention.
struct Contention {
  double memory_alone = 0, memory_together = 0;  ///< memory bandwidth of a rank [B/s]
  double compute_slowdown = 1;
  double hand_over = 0;  ///< from the program to the progress thread, and back [s]
};

Contention contention_of(const Results& results);

}  // namespace stepcast
