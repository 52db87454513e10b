#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "kernels/capture.hpp"
#include "validate/machine_speed.hpp"
#include "validate/rank_part.hpp"
#include "validate/rank_run.hpp"
#include "validate/validation.hpp"

namespace stepcast {

/// What is captured of a network on this rank, some steps a turn.
struct Turns {
  Need need;
  std::string doing;
  std::filesystem::path file;        ///< of all ranks
  RankPart part;                     ///< what this rank computes of it
  std::unique_ptr<Capture> capture;  ///< null where this rank only sleeps
  int pairs = 1;                     ///< of steps a turn
  /// Adds what the core does between layers to the trace of this network; may be null.
  std::function<void(Network&, Trace&)> add_between = {};
};

/// Captures all of them in turn, in as many rounds as fit into the time that there is.
/// @param speed  looked at before each turn; then its pace is set. Null: it is not
void take_turns(const RankRun& run, MachineSpeed* speed, std::vector<Turns>& all);

}  // namespace stepcast
