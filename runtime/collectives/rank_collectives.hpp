#pragma once

#include <functional>
#include <limits>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "runtime/collectives/schedule_executor.hpp"
#include "runtime/memory/parameters.hpp"
#include "strategies/compression/gradient_compression.hpp"
#include "strategies/plan/plan.hpp"

namespace stepcast {

/// The phases of an all-reduce of compressed gradients over `ranks` ranks, as the rank at `position` executes
/// them. One-bit and fp16: first every rank sends each share of its gradient straight to the share's owner,
/// one message each way in a round; then a ring all-gather distributes the owners' sums. Each rank sends and
/// receives as much as in a ring all-reduce. Top-k: one phase, a ring all-gather of what each rank sends.
std::vector<std::vector<Round>> compressed_all_reduce_rounds(const WireLayout& layout, Compression kind,
                                                             int ranks, int position);

/// The collectives of a plan as one rank executes them.
class RankCollectives {
 public:
  /// @param choices  the algorithms of all-reduces with `all_reduce: automatic`, as the forecast chose them
  RankCollectives(const Plan& plan, AllReduceChoices choices, RankId rank)
      : plan_(plan), choices_(std::move(choices)), rank_(rank) {}

  /// The elements of the buffer of a collective that this rank's group works on: all, or the group's
  /// part in a collective by groups. @param elements  of the whole buffer
  Slice owned_slice(CollectiveId id, std::int64_t elements) const;

  /// The rounds of each phase of a collective, with ranks of the run as peers; empty in a group of one
  /// rank. @param elements  of the buffer, before compression
  /// @throws std::logic_error for an automatic all-reduce without a choice
  const std::vector<std::vector<Round>>& phases(CollectiveId id, std::int64_t elements);

 private:
  /// Index of this rank among the ranks of a communicator. @throws std::logic_error if it is not one of them
  int place_in(const Communicator& communicator) const;
  /// The rounds of each phase, with places in the group as peers.
  std::vector<std::vector<Round>> rounds_in_group(CollectiveId id, const Communicator& communicator,
                                                  int place, std::int64_t elements) const;
  std::shared_ptr<const Schedule> schedule(CollectiveId id, const Communicator& communicator) const;

  const Plan& plan_;
  AllReduceChoices choices_;
  RankId rank_;
  std::map<std::pair<CollectiveId, std::int64_t>, std::vector<std::vector<Round>>> known_;
};

/// The slices of a buffer of `elements` elements that the rank at `place` of a group owns after a
/// reduce-scatter.
std::vector<Slice> slices_after_reduce_scatter(const Schedule& schedule, int place, std::int64_t elements);

/// The slices of the gradients, as they are stored in memory, that `rank` owns after the plan's
/// reduce-scatters.
/// @param layers  layers whose collectives count: a pipeline stage numbers the elements of each of its chunks
/// anew
std::vector<Slice> reduce_scattered_slices(const Plan& plan, RankId rank, const ParameterLayout& map,
                                           LayerRange layers = {0, std::numeric_limits<int>::max()});

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
std::vector<RankId> ranks_of_group(const Communicator& communicator, RankId rank);

/// Collective `index` of the plan, on a buffer of `elements` elements.
/// @param rounds  RankCollectives::phases of the collective, with ranks of the run as peers
LibraryCollective library_collective(const Plan& plan, CollectiveId id, RankId rank, std::int64_t elements,
                                     const std::vector<std::vector<Round>>& rounds);

}  // namespace stepcast
