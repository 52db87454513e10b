#pragma once

#include <string>
#include <vector>

#include "report/results/results.hpp"
#include "runtime/collectives/link_table.hpp"
#include "runtime/ranks/netcluster.hpp"

namespace stepcast {

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
