#pragma once

#include <time.h>

#include <cmath>

namespace stepcast {

/// @param date  of CLOCK_MONOTONIC [s]
inline void sleep_until(double date) {
  const double whole = std::floor(date);
  const timespec time{static_cast<time_t>(whole), static_cast<long>(1e9 * (date - whole))};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, nullptr) != 0) {
  }
}

}  // namespace stepcast
