#pragma once

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "sim/collectives/collective_schedules.hpp"
#include "sim/fidelity/fidelity_rule.hpp"
#include "sim/patterns/sim_network.hpp"

namespace stepcast {

/// The traffic of a plan as patterns of the network, which are known before a run starts: a schedule for
/// every collective, the edges of input loads and channels, and the fidelity and folding with which all are
/// simulated (sim/fidelity/). It is complete when it is constructed and never changes: another budget has
/// another object, and runs only read it.
class PlannedCollectives {
 public:
  /// @param schedules  must outlive the object
  PlannedCollectives(const CollectiveSchedules& schedules, ComputeBudget budget);

  const CollectiveSchedules& schedules() const { return schedules_; }
  const NetworkPatterns& patterns() const { return patterns_; }
  /// A network on which a run starts these patterns.
  LinkOptions link_options() const;
  std::int64_t routes() const { return schedules_.patterns().routes() + patterns_.routes(); }
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

 private:
  const Simulation& simulation() const { return schedules_.simulation(); }
  const Plan& plan() const { return schedules_.plan(); }
  void join_groups();
  void add_patterns();
  std::vector<PatternId> patterns_of(const Collective& collective, const CollectiveSchedules::Chosen& chosen);
  void add_loads();
  void add_channels();

  const CollectiveSchedules& schedules_;
  UsedFolding folding_;
  std::vector<bool> joint_;  ///< by communicator
  ChosenFidelity fidelity_;
  /// The platform in which every message costs as much as one between programs; null: these costs do not
  /// differ.
  std::unique_ptr<const Platform> of_programs_;
  NetworkPatterns patterns_;
  std::vector<std::vector<PatternId>> collectives_;          ///< by collective and group; one if joint
  std::map<std::pair<RoleId, int>, PatternId> loads_;        ///< by role and member
  std::map<std::pair<RoleId, RoleId>, PatternId> channels_;  ///< by sending and receiving role
};

}  // namespace stepcast
