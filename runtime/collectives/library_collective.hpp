#pragma once

#include <vector>

#include "runtime/collectives/schedule_executor.hpp"
#include "strategies/plan/plan.hpp"

namespace stepcast {

/// A collective of a plan in the terms of a library such as NCCL, as one rank calls it. It is plain data, so
/// that tests need no library.
///
/// The library numbers the ranks of a group differently: the rank at place p has library rank p + 1, and the
/// last place has library rank 0. The reason is that a ring reduce-scatter leaves part p + 1 at place p,
/// while the library's reduce-scatter leaves part n at library rank n.
struct LibraryCollective {
  enum class Kind { all_reduce, reduce_scatter, all_gather, broadcast, reduce, exchange };

  /// A part of the buffer, and the library rank that has it after a reduce-scatter and before an all-gather.
  struct Part {
    int owner = 0;
    Slice slice;
  };

  Kind kind{};
  int root = 0;                  ///< broadcast, reduce: library rank of the root
  std::vector<Part> parts = {};  ///< reduce_scatter, all_gather: all parts of the group
  bool even = false;  ///< part n belongs to library rank n, and all parts have one size and lie in order
  /// exchange: rounds of sends and receives, with library ranks as peers. All transfers of a round are made
  /// at once; sends of a round send the values from before the round.
  std::vector<Round> rounds = {};
};

/// Place of a rank in a communicator of a plan. Library ranks are positions in a group, not ranks of the run.
struct GroupPlace {
  int group = 0;   ///< index of the group within the communicator
  int number = 0;  ///< library rank within the group; -1: the rank is not in the communicator
};

GroupPlace place_in_group(const Communicator& communicator, RankId rank);

/// The ranks of the run that form `rank`'s group of a communicator, in the group's order; empty if the rank
/// is not in the communicator.
std::vector<int> ranks_of_group(const Communicator& communicator, RankId rank);

/// Collective `index` of the plan, on a buffer of `elements` elements.
/// @param rounds  RankCollectives::phases of the collective, with ranks of the run as peers
LibraryCollective library_collective(const Plan& plan, CollectiveId id, RankId rank, std::int64_t elements,
                                     const std::vector<std::vector<Round>>& rounds);

}  // namespace stepcast
