#pragma once

#include <string>
#include <vector>

#include "report/results.hpp"
#include "validate/cluster.hpp"
#include "validate/link_table.hpp"

namespace stepcast {

/// What rows of measure_links and measure_sharing say.
///
/// Times of messages: a ring's sum of S bytes is 2 (P - 1) of S / P bytes one after the other.
/// In two racks (a group smaller than all): rounds of a ring inside the racks, half of which add and half
/// replace.
std::vector<MessageTime> message_times(const Results& results, const Cluster& cluster);

struct AllReduceTime {
  double bytes = 0;
  std::string algorithm;                            ///< the fastest of ours
  double measured = 0, predicted = 0, library = 0;  ///< [s]; library 0: not measured
};

/// For each size the fastest of our algorithms, what the table says of it, and the library's.
std::vector<AllReduceTime> all_reduce_times(const Results& results, const LinkTable& links, int ranks);

struct Sharing {
  double memory_alone = 0, memory_together = 0;  ///< of a rank [B/s]
  double compute_slowdown = 1;
  double hand_over = 0;  ///< from a program to the thread that communicates, and back [s]
};

Sharing sharing_of(const Results& results);

}  // namespace stepcast
