#pragma once

#include <vector>

#include "strategies/plan.hpp"
#include "validate/play.hpp"

namespace stepcast {

/// What a rank asks a library such as NCCL to do for one collective of a plan. Plain data, so that it is
/// tested without the library.
///
/// The library numbers the ranks of a group anew: place p is number p + 1, the last one 0, because a ring's
/// reduce-scatter leaves part p + 1 with place p, and the library's leaves part n with number n.
struct GroupCall {
  enum class Kind { all_reduce, reduce_scatter, all_gather, broadcast, reduce, exchange };

  /// Of the sum: who has it after a reduce-scatter and before an all-gather.
  struct Part {
    int owner = 0;
    Slice slice;
  };

  Kind kind{};
  int root = 0;                  ///< broadcast, reduce
  std::vector<Part> parts = {};  ///< reduce_scatter, all_gather: all of the group's
  bool even = false;             ///< part n is number n's, all are of one size, and they lie in order
  /// exchange: rounds of sends and receives, peers as the library's numbers. Those of a round are to be made
  /// at once; what is sent in it was there before it.
  std::vector<Round> rounds = {};
};

/// Where a rank is in a communicator of a plan.
struct GroupPlace {
  int group = 0;   ///< of the communicator's
  int number = 0;  ///< the library's, in the group
};

/// -1 as the number: not in it.
GroupPlace place_in_group(const Communicator& communicator, int rank);

/// @param rounds  RealCollectives::phases of it, peers as ranks of the run
GroupCall group_call(const Plan& plan, int index, int rank, std::int64_t elements,
                     const std::vector<std::vector<Round>>& rounds);

}  // namespace stepcast
