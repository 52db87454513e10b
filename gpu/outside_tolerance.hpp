#pragma once

#include <stdexcept>

namespace stepcast {

/// Everything was measured and written; what was measured is further from what was expected than allowed.
/// Exit code 5.
struct OutsideTolerance : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace stepcast
