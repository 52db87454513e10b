#pragma once

#include <memory>
#include <vector>

#include "sim/network/schedule_link_load.hpp"

namespace stepcast {

/// A schedule placed on a platform, with the links that it loads.
struct Pattern {
  std::shared_ptr<const Schedule> schedule;
  Placement placement;
  std::vector<PhaseLoad> phases;
};

}  // namespace stepcast
