#pragma once

#include <functional>
#include <string>
#include <vector>

#include "report/results.hpp"
#include "validate/repeats.hpp"

namespace stepcast {

struct LinkMeasurement {
  double budget = 0.05;       ///< seconds for each size of each thing measured, all rounds, about
  double longest = 0.3;       ///< sizes grow until one repeat takes longer [s]
  double most_bytes = 128e6;  ///< or they are larger than this
  int group = 0;              ///< ranks in a row that share a switch; 0: all
  double pause = 0;           ///< before each all-reduce [s]
  int rounds = 1;             ///< over all that is measured: the speed of a shared machine changes
  bool table_only = false;    ///< only what a table of messages is fitted to
  /// The sum over all ranks as a library makes it, to compare with; may be empty.
  std::function<void(float*, std::int64_t)> library_all_reduce;
  std::function<void(const std::string&)> say;  ///< told before each thing that is measured
};

/// Measures what lies between the ranks; all ranks call it. Rows (rank 0 only): `what`, `algorithm`, `bytes`,
/// `seconds` (median), `low`, `high` (quartiles), `repeats`, `cpu_seconds` of rank 0. What is measured:
///
/// half_round_trip    ranks 0 and 1, there and back, halved; the others do nothing
/// pairs              the same between ranks 2 i and 2 i + 1 at once: contention of pairs
/// shift_replace      every rank sends to the next of its group and receives from the one before, at once: a
///                    round of a ring
/// shift_add          the same, added to what is there: a round of a reduce-scatter
/// all_reduce         by each algorithm and by the library
std::vector<Row> measure_links(Transport& transport, const LinkMeasurement& options);

/// A row of such a table.
Row link_row(const std::string& what, const std::string& algorithm, double bytes, const Repeats& repeats);

}  // namespace stepcast
