#pragma once

namespace stepcast {

/// Both clocks at once [s].
struct Instant {
  double wall = 0;  ///< CLOCK_MONOTONIC
  double cpu = 0;   ///< CLOCK_PROCESS_CPUTIME_ID: of all threads of the process, so OpenMP's count too
};

Instant now();

/// What one call of `now` itself adds to an interval: the median of many.
Instant cost_of_now();

}  // namespace stepcast
