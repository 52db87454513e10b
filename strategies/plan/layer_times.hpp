#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/layer_times/trace.hpp"
#include "models/network/model.hpp"
#include "strategies/program/worker.hpp"

namespace stepcast {

/// Layer times of one micro-batch, from traces of one model.
struct LayerTimes {
  std::vector<LayerSeconds> median;
  std::vector<std::vector<LayerSeconds>> samples;
  std::string
      kind;  ///< "captured", "derived", with ", interpolated" or ", scaled" where the batch was not measured
  std::vector<std::string> flags;
  int ranks = 1;  ///< ranks of the samples: equally many of each, one rank after the other
};

/// Times for `batch` samples: a trace of that batch; else between two traces of smaller and larger batches,
/// linear in the batch layer by layer; else the nearest trace, forward and backward in proportion to the
/// batch (the update does not depend on it).
/// @param traces  at least one, all of this model
LayerTimes layer_times(const Model& model, std::vector<const Trace*> traces, std::int64_t batch);

}  // namespace stepcast
