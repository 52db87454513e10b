#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/fidelity/fidelity_rule.hpp"
#include "sim/patterns/network_patterns.hpp"
#include "sim/simulation.hpp"
#include "strategies/nccl/collective_time.hpp"

namespace stepcast {

/// The different nodes of all groups of a communicator, each taken for all nodes of its group. Groups share
/// the nodes in which several of them are. None if the platform names no NCCL, or where NCCL does not run: in
/// a group that includes hosts, with unequal numbers of ranks on its nodes, or with two ranks on a device.
std::vector<NcclRanks> nccl_ranks(const Platform& platform, const Plan& plan,
                                  const Communicator& communicator);

/// The time of NCCL for one group of a collective, with all groups of its communicator active at the same
/// time: they share NICs and sockets. No value without `ranks`, if the scenario asks for an algorithm that
/// NCCL does not have, or for an exchange of halos. Those are simulated message by message as without NCCL.
/// The simulation's factors on all bandwidths and latencies count. Those on single links do not.
/// @param ranks  nccl_ranks of its communicator
/// @param asked  the all-reduce that the scenario asks for; `ring` leaves NCCL only its rings
std::optional<NcclTime> nccl_time_of(const Simulation& simulation, const Collective& collective,
                                     const std::vector<NcclRanks>& ranks, const AllReduceChoice& asked);

/// The schedule that stands for NCCL's choice in counts and in real runs: a ring, or a double tree.
Algorithm schedule_algorithm(const NcclTime& time);

/// The schedule of every collective of a plan, the fastest one if the choice is automatic, and its duration
/// on an otherwise idle network. How they are simulated is not decided here (PlannedCollectives).
class CollectiveSchedules {
 public:
  struct Chosen {
    AllReduceChoice choice;
    std::shared_ptr<const Schedule> schedule;  ///< of one group; null: nothing is sent
    PatternId pattern;                         ///< of all groups together, in patterns()
    double seconds = 0;                        ///< duration on an otherwise idle network [s]
    bool known = false;                        ///< `seconds` are NCCL's, so that no message is simulated
  };

  /// @param simulation, topology  must outlive the object
  CollectiveSchedules(const Simulation& simulation, const Topology& topology);

  const Simulation& simulation() const { return simulation_; }
  const Plan& plan() const { return *simulation_.plan; }
  const Placement& placement() const { return placement_; }  ///< of all ranks
  /// The placement of some neighbouring groups of a communicator.
  Placement placement(const Communicator& communicator, int first_group, int groups) const;
  const Chosen& operator[](CollectiveId collective) const { return chosen_[collective.index()]; }
  const NetworkPatterns& patterns() const { return patterns_; }
  /// The collectives that send anything, with all groups of a communicator as one pattern.
  CollectiveLoad load() const;
  /// True if the workers of each role are proven symmetric (workers_symmetric); computed in the first call.
  bool workers_are_symmetric() const;

  std::string algorithm_names() const;
  std::string algorithm(CollectiveId collective) const;  ///< empty: it is no all-reduce, or moves nothing
  AllReduceChoices automatic_choices() const;

 private:
  Chosen choose(const Collective& collective);
  Chosen candidate(const Collective& collective, const AllReduceChoice& choice);

  const Simulation& simulation_;
  Placement placement_;
  NetworkPatterns patterns_;
  std::vector<Chosen> chosen_;                                        ///< by collective
  std::map<std::string, std::shared_ptr<const Schedule>> schedules_;  ///< by schedule_key
  std::map<CommunicatorId, std::vector<NcclRanks>> nccl_ranks_;
  /// Pattern by schedule and communicator.
  std::map<std::pair<const Schedule*, CommunicatorId>, PatternId> placed_;
  mutable std::optional<bool> symmetric_;  ///< see workers_are_symmetric
};

}  // namespace stepcast
