#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "sim/fold_rule.hpp"
#include "sim/network.hpp"
#include "sim/simulate.hpp"

namespace stepcast {

/// The traffic of a plan as patterns of the network, known before the run starts: for every collective a
/// schedule (the cheapest, where the choice is automatic), for loads and channels their edges, and the form
/// in which all are simulated (sim/form_rule.hpp).
class Collectives {
 public:
  Collectives(const Simulation& simulation, const Topology& topology, Patience patience = Patience::little);

  SimNetwork& network() { return *network_; }
  std::int64_t routes() const { return planner_->routes() + network_->routes(); }
  /// Whether all groups of a communicator play a collective as one.
  bool joint(int communicator) const { return joint_[static_cast<std::size_t>(communicator)]; }
  int pattern(int collective, int group) const;  ///< group 0 where joint; -1: nothing to do
  int load_pattern(int role, int member) const;  ///< member 0 where the role is folded
  int channel_pattern(int from, int to) const;   ///< -1: send each message over its own route
  const ChosenForm& form() const { return form_; }
  const ChosenFolding& folding() const { return folding_; }
  /// Whether the rules were asked to be close and do not know that they are.
  bool may_be_off() const;
  Traffic traffic() const;
  std::string algorithm_names() const;
  const Placement& placement() const { return placement_; }

 private:
  struct Chosen {
    AllReduceChoice choice;
    std::shared_ptr<const Schedule> schedule;  ///< of one group
    int planned = 0;                           ///< pattern of the planner's
    double seconds = 0;                        ///< alone on the network
    std::vector<int> patterns;                 ///< of each group; one where joint
  };

  void choose(std::size_t collective);
  Chosen candidate(const Collective& collective, const AllReduceChoice& choice);
  Placement ranks_of(const Communicator& communicator, int first_group, int groups) const;
  void add_patterns();
  void add_loads();
  void add_channels();

  const Simulation& simulation_;
  Placement placement_;  ///< of all ranks
  std::vector<bool> joint_;
  std::vector<Chosen> chosen_;           ///< of each collective
  std::unique_ptr<SimNetwork> planner_;  ///< works out what candidates cost
  std::unique_ptr<SimNetwork> network_;
  std::map<std::string, std::shared_ptr<const Schedule>> schedules_;  ///< known ones, by what decides them
  std::map<const Schedule*, std::map<int, int>> planned_;  ///< pattern of a schedule, by communicator
  std::map<std::pair<int, int>, int> loads_, channels_;
  ChosenFolding folding_;
  ChosenForm form_;
};

}  // namespace stepcast
