#pragma once

#include <string>
#include <vector>

#include "sim/network.hpp"
#include "sim/patience.hpp"
#include "sim/simulate.hpp"

namespace stepcast {

/// What a run's collectives are, as far as the choice of their form goes.
struct Traffic {
  struct One {
    const Schedule* schedule;  ///< of one group
    const Pattern* pattern;    ///< of all groups of its communicator
    Bytes buffer;
    int communicator;
    std::size_t number;       ///< of the plan
    double seconds, latency;  ///< alone on the network in the form coupled, and the latencies in it
  };

  const Simulation& simulation;
  std::vector<One> collectives;  ///< those that send anything
  bool folds = true;             ///< one program for all workers of a role
  bool joint = true;             ///< all groups of a communicator play as one

  int groups(const One& one) const {
    return simulation.plan->communicators[static_cast<std::size_t>(one.communicator)].groups();
  }
};

struct ChosenForm {
  Form form = Form::message;
  SimNetwork::Sharing sharing = SimNetwork::Sharing::simgrid;
  bool shares_links = false;  ///< single messages go over FairLinks
  int segments = 1;           ///< to cut phases into
  std::string name;           ///< in results
  bool roughly = false;
  std::vector<double> seconds;  ///< of each collective of the traffic, where all are known
};

/// Rule for `form: automatic`: the cheapest form that is known to be within 1 % of every message.
/// Collectives that never meet: "coupled", where rounds go in lock step or bounds leave no room for 1 %; else
/// "message, sampled", each different collective once, alone, by few of its rounds; and where that takes more
/// than some 50 ms "coupled", if all ranks are at work in every round. Collectives that meet:
/// "coupled", round by round, where edges of all ranks are at work in every round, and of one speed. All else
/// message by message where that is affordable, and by the form "coupled, roughly" where it is not. Where
/// rounds make more than 30,000 flows a step, phases are cut into fewer segments, 8 at least, and are close
/// only if latencies take less than 5 % of their time. Groups that have programs of their own
/// (sim/fold_rule.hpp) are played message by message, and so are asynchronous plans: those of more than 64
/// roles without collectives over FairLinks, as "message, shared".
ChosenForm chosen_form(const Traffic& traffic, Patience patience);

/// Whether single messages go over FairLinks, in a plan whose messages are played one by one.
inline bool shares_links(const Plan& plan, Form form) {
  constexpr std::size_t kMostExactRoles = 64;
  return form == Form::automatic && plan.collectives.empty() && plan.roles.size() > kMostExactRoles;
}

}  // namespace stepcast
