#pragma once

#include <functional>
#include <limits>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "runtime/collectives/schedule_executor.hpp"
#include "runtime/memory/parameters.hpp"
#include "strategies/compression/compressed_gradient.hpp"
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

}  // namespace stepcast
