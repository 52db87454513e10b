#pragma once

#include <map>
#include <memory>

#include "kernels/network.hpp"
#include "scenarios/library.hpp"
#include "validate/machine_speed.hpp"
#include "validate/rank_part.hpp"
#include "validate/rank_run.hpp"
#include "validate/validation.hpp"

namespace stepcast {

/// Networks that real runs train, where captures have timed them.
struct CapturedNetworks {
  std::map<Need, std::unique_ptr<Network>> whole;
  CapturedParts parts;
};

/// What captures work with.
struct CapturePlace {
  Backend& backend;
  Library& library;
  MachineSpeed* speed = nullptr;  ///< looked at before each turn, so that its pace is that of the captures
};

/// Captures the traces that the points of a validation need, all ranks at once, so that they share the
/// machine as they will when they train; where they sleep instead, rank 0 alone. Rank 0 writes them.
/// @return networks, to be run in the same memory: where arrays lie decides how fast they are read
CapturedNetworks capture_traces(const RankRun& run, const Validation& validation,
                                const ValidationOptions& options, const CapturePlace& place);

}  // namespace stepcast
