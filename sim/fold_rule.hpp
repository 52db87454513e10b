#pragma once

#include <functional>
#include <string>

#include "sim/alike.hpp"
#include "sim/step_cost.hpp"

namespace stepcast {

/// Whether one program stands for all workers of a role.
struct ChosenFolding {
  bool folds = true;
  std::string name;  ///< in results: "folded", "folded, roughly" or "unfolded"
  bool roughly = false;
};

/// Rule for `fold: automatic`. Workers are folded where that is exact: a role's workers are in one group of
/// each communicator, and what they send alone never tells them apart; or all are proven alike
/// (sim/alike.hpp). Else, where every message is asked for or worth a try, each gets a program of its own.
/// What is left is folded and called "folded, roughly": groups of a communicator that differ then wait for
/// each other. The cheap forms, where asked for, are folded always.
/// @param singles  what workers send or load alone; asked for where it matters
ChosenFolding chosen_folding(const Traffic& traffic, Patience patience,
                             const std::function<std::vector<SingleMessages>()>& singles);

}  // namespace stepcast
