#pragma once

#include <functional>
#include <string>
#include <vector>

#include "report/results/results.hpp"
#include "runtime/host_noise/repeated_timing.hpp"
#include "runtime/transport/library_all_reduce.hpp"

namespace stepcast {

/// Extent of the link benchmarks.
struct LinkBenchmarkOptions {
  double budget = 0.05;      ///< time for one message size of one benchmark, over all rounds, about [s]
  double max_seconds = 0.3;  ///< sizes grow until one repeat takes longer [s]
  double max_bytes = 128e6;  ///< sizes grow up to this [B]
  int group = 0;             ///< number of consecutive ranks behind one switch; 0: all ranks
  double pause = 0;          ///< before each all-reduce [s]
  int rounds = 1;            ///< rounds over all benchmarks, because the speed of a shared machine changes
  bool table_only = false;   ///< only what a LinkTable is fitted to
  bool one_way = false;      ///< with `table_only`: also the rows of measured_one_way
  std::vector<LibraryAllReduce> compared = {};  ///< libraries whose all-reduces are measured too
  /// Called before each benchmark with its name; may be empty.
  std::function<void(const std::string&)> on_progress;
};

/// Measures the links between the ranks; all ranks call it. Rows (rank 0 only): `what`, `algorithm`, `bytes`,
/// `seconds` (median), `low`, `high` (quartiles), `repeats`, `cpu_seconds` of rank 0. Benchmarks:
///
/// half_round_trip    half of a round trip between ranks 0 and 1, while the other ranks are idle
/// pairs              the same between ranks 2 i and 2 i + 1 of all pairs at once: contention of pairs
/// shift_replace      every rank sends to the next rank of its group and receives from the previous one, at
///                    once: a round of a ring
/// shift_add          the same with the received values added: a round of a ring reduce-scatter
/// all_reduce         all-reduces by each algorithm and by each library of `compared`
std::vector<Row> measure_links(Transport& transport, const LinkBenchmarkOptions& options);

/// A row of such a table.
Row link_row(const std::string& what, const std::string& algorithm, double bytes, const Repeats& repeats);

}  // namespace stepcast
