#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/fidelity/fidelity_rule.hpp"
#include "sim/patterns/sim_network.hpp"
#include "sim/simulation.hpp"
#include "strategies/nccl/collective_time.hpp"

namespace stepcast {

/// The time of NCCL for one group of a collective, with all groups of its communicator active at the same
/// time: they share NICs and sockets. No value if the platform names no NCCL, if the scenario asks for an
/// algorithm that NCCL does not have, or for a collective that it does not run: an exchange of halos, one
/// that includes hosts, or a group with unequal numbers of ranks on its nodes. Those are simulated message by
/// message as without NCCL.
/// The simulation's factors on all bandwidths and latencies count. Those on single links do not.
/// @param asked  the all-reduce that the scenario asks for; `ring` leaves NCCL only its rings
std::optional<NcclTime> nccl_time_of(const Simulation& simulation, const Collective& collective,
                                     const AllReduceChoice& asked);

/// The schedule that stands for NCCL's choice in counts and in real runs: a ring, or a double tree.
Algorithm schedule_algorithm(const NcclTime& time);

/// The traffic of a plan as patterns of the network, which are known before the run starts: a schedule for
/// every collective (the fastest one if the choice is automatic), the edges of input loads and channels, and
/// the fidelity and folding with which all are simulated (sim/fidelity/).
class PlannedCollectives {
 public:
  PlannedCollectives(const Simulation& simulation, const Topology& topology,
                     ComputeBudget budget = ComputeBudget::small);

  /// Chooses fidelity and folding anew, for another budget of time. Schedules and durations stay.
  void choose_simulation(ComputeBudget budget);

  SimNetwork& network() { return *network_; }
  std::int64_t routes() const { return planner_->routes() + network_->routes(); }
  /// True if all groups of a communicator are simulated as one pattern.
  bool joint(CommunicatorId communicator) const { return joint_[communicator.index()]; }
  /// None if nothing is sent. Joint communicators have group 0 only.
  PatternId pattern(CollectiveId collective, int group) const;
  /// None if nothing is loaded. Folded roles have member 0 only.
  PatternId load_pattern(RoleId role, int member) const;
  /// None if each message is sent over its own route.
  PatternId channel_pattern(RoleId from, RoleId to) const;
  const ChosenFidelity& fidelity() const { return fidelity_; }
  const UsedFolding& folding() const { return folding_; }
  /// True if the rules chose automatically and do not know whether their choice is close.
  bool may_be_inaccurate() const;
  CollectiveLoad traffic() const;
  std::string algorithm_names() const;
  std::string algorithm(CollectiveId collective) const;  ///< empty: it is no all-reduce, or moves nothing
  AllReduceChoices automatic_choices() const;
  const Placement& placement() const { return placement_; }

 private:
  struct Chosen {
    AllReduceChoice choice;
    std::shared_ptr<const Schedule> schedule;  ///< of one group
    PatternId planned;                         ///< its pattern in planner_
    double seconds = 0;                        ///< duration on an otherwise idle network [s]
    bool known = false;                        ///< `seconds` are NCCL's, so that no message is simulated
    std::vector<PatternId> patterns;           ///< by group: its pattern in network_; one if joint
  };

  void choose(std::size_t collective);
  Chosen candidate(const Collective& collective, const AllReduceChoice& choice);
  Placement ranks_of(const Communicator& communicator, int first_group, int groups) const;
  void add_patterns();
  void add_loads();
  void add_channels();

  const Simulation& simulation_;
  Placement placement_;  ///< of all ranks
  /// The platform in which every message costs as much as one between programs; null: these costs do not
  /// differ.
  std::unique_ptr<const Platform> of_programs_;
  std::vector<bool> joint_;              ///< by communicator
  std::vector<Chosen> chosen_;           ///< by collective
  std::unique_ptr<SimNetwork> planner_;  ///< computes the durations of candidate schedules
  std::unique_ptr<SimNetwork> network_;
  std::map<std::string, std::shared_ptr<const Schedule>> schedules_;  ///< by schedule_key
  /// Pattern in planner_, by schedule and communicator.
  std::map<const Schedule*, std::map<CommunicatorId, PatternId>> planned_;
  std::map<std::pair<RoleId, int>, PatternId> loads_;        ///< pattern by role and member
  std::map<std::pair<RoleId, RoleId>, PatternId> channels_;  ///< pattern by sending and receiving role
  std::optional<bool> symmetric_;  ///< whether workers_symmetric, once that is known
  UsedFolding folding_;
  ChosenFidelity fidelity_;
};

}  // namespace stepcast
