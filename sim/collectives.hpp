#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "sim/network.hpp"
#include "sim/simulate.hpp"

namespace stepcast {

/// The traffic of a plan as patterns of the network, known before the run starts: for every collective a
/// schedule (the cheapest, where the choice is automatic), for loads and channels their edges, and the form
/// in which all are simulated.
///
/// Rule for `form: automatic`: coupled, where it is known to be within 1 % of every message. Not so are
/// pipelines (double trees) and, where several collectives run at once, those with rounds in which some ranks
/// send nothing (trees), or, of several communicators, edges of different speed: these runs are played
/// message by message where a step of that takes half a second at most, and else by the form "coupled,
/// roughly". Collectives that run at once are played round by round, so that the latency of one lies between
/// its transfers and lets others pass; where that makes more than 30,000 flows a step they are cut into fewer
/// segments, 8 at least, and are close only if latencies take less than 5 % of their time. Asynchronous
/// plans, and messages between single workers, are played message by message; those of asynchronous plans of
/// more than 64 roles without collectives over FairLinks, as "message, shared".
class Collectives {
 public:
  Collectives(const Simulation& simulation, const Topology& topology);

  SimNetwork& network() { return *network_; }
  std::int64_t routes() const { return planner_->routes() + network_->routes(); }
  /// Whether all groups of a communicator play a collective as one.
  bool joint(int communicator) const { return joint_[static_cast<std::size_t>(communicator)]; }
  int pattern(int collective, int group) const;  ///< group 0 where joint; -1: nothing to do
  int load_pattern(int role, int member) const;  ///< member 0 where the role is folded
  int channel_pattern(int from, int to) const;   ///< -1: send each message over its own route
  int segments() const { return segments_; }
  bool shares_links() const { return shares_links_; }  ///< single messages go over FairLinks
  double messages_a_step() const;                      ///< if every message were played
  double fluid_flows_a_step() const;                   ///< if all were played in the form fluid
  double seconds_of(double messages) const;            ///< of the processor, to play so many, about
  std::string form_name() const { return form_name_; }
  std::string algorithm_names() const;
  const Placement& placement() const { return placement_; }

 private:
  struct Chosen {
    AllReduceChoice choice;
    std::shared_ptr<const Schedule> schedule;  ///< of one group
    double seconds = 0, latency = 0;           ///< alone on the network, and the latencies in it
    std::vector<int> patterns;                 ///< of each group; one where joint
  };

  void choose(std::size_t collective);
  Chosen candidate(const Collective& collective, const AllReduceChoice& choice);
  Placement ranks_of(const Communicator& communicator, int first_group, int groups) const;
  std::size_t busy_communicators() const;
  bool is_uneven(const Chosen& chosen, int communicator) const;
  bool several_at_once() const;
  bool cheap_form_is_close(bool several) const;
  int segments_of_phases() const;
  Form resolve_form();
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
  int segments_ = 1;
  bool shares_links_ = false;
  std::string form_name_;
};

}  // namespace stepcast
