#pragma once

#include <vector>

#include "models/cut.hpp"
#include "models/model.hpp"
#include "strategies/plan.hpp"

namespace stepcast {

/// Rows of a map in one message of a halo exchange, and where they lie in the exchange's buffer.
struct HaloBox {
  bool sends = false;  ///< else receives
  std::vector<Rows> box;
  std::int64_t begin = 0;  ///< [floats]
};

/// What device `place` of a group sends and receives in each phase of a halo exchange of the plan.
std::vector<std::vector<HaloBox>> halo_messages(const Model& model, const SampleCut& cut,
                                                const Collective& exchange, int place);

}  // namespace stepcast
