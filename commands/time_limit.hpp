#pragma once

#include "commands/limits.hpp"
#include "core/units.hpp"
#include "scenarios/experiment.hpp"

namespace stepcast {

/// What one simulation plays one by one.
struct Detailed {
  double messages = 0;  ///< or flows of the forms fluid and coupled
  Seconds time;         ///< of the processor, roughly
};
/// Nothing where it takes ten minutes at most by any way of counting.
Detailed detailed(const Experiment& experiment);

/// Throws LimitError where the simulations of the largest point would take longer than the limit.
void check_time(const Experiment& largest, const RunSize& size, const RunOptions& options);

}  // namespace stepcast
