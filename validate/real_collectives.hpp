#pragma once

#include <functional>
#include <limits>
#include <map>
#include <span>
#include <vector>

#include "strategies/plan.hpp"
#include "validate/array_map.hpp"
#include "validate/link_table.hpp"
#include "validate/play.hpp"

namespace stepcast {

/// The messages of a platform between ranks of a plan that are neighbours.
LinkTable link_table_of(const Platform& platform, const std::vector<int>& endpoints);

/// The collectives of a plan as this rank plays them.
class RealCollectives {
 public:
  RealCollectives(const Plan& plan, const LinkTable& links, int rank)
      : plan_(plan), links_(links), rank_(rank) {}

  /// What this rank works on of collective `index`, whose buffer has so many elements: all, or its group's
  /// part.
  Slice part(int index, std::int64_t elements) const;

  /// The rounds of each phase of collective `index` on a buffer of so many elements (as they are before they
  /// are compressed), peers as ranks of the
  /// run; none in a group of one. Where the choice is automatic, the algorithm that takes least by the table.
  const std::vector<std::vector<Round>>& phases(int index, std::int64_t elements);

 private:
  /// Of this rank among the ranks of a communicator.
  int place_in(const Communicator& communicator) const;
  /// Peers as places in the group.
  std::vector<std::vector<Round>> rounds_in_group(const Collective& collective,
                                                  const Communicator& communicator, int place,
                                                  std::int64_t elements) const;
  std::shared_ptr<const Schedule> schedule(const Collective& collective,
                                           const Communicator& communicator) const;

  const Plan& plan_;
  LinkTable links_;
  int rank_;
  std::map<std::pair<int, std::int64_t>, std::vector<std::vector<Round>>> known_;
};

/// What the rank at a place of a group has the sums of after a reduce-scatter.
std::vector<Slice> parts_after_scatter(const Schedule& schedule, int place, std::int64_t elements);

/// Parts of buffers of `gradients` that `rank` has the sums of after the plan's reduce-scatters, as they lie
/// in memory. @param layers  of which: those of a collective of a stage are numbered in a run of layers
std::vector<Slice> scattered_parts(const Plan& plan, int rank, const ArrayMap& map,
                                   LayerRange layers = {0, std::numeric_limits<int>::max()});

}  // namespace stepcast
