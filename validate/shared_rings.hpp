#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>

#include "validate/transport.hpp"

namespace stepcast {

/// Memory that the ranks of one machine share: a ring of floats for each ordered pair, a bell for each rank.
/// Small enough to stay in the cache, so that a float crosses main memory only in the ranks' own buffers.
struct SharedRings {
  static std::size_t bytes_for(int ranks);  ///< zeroed and 64-byte aligned memory that they need
};

/// Transport over such memory, which outlives it. Waiting spins for `spin_seconds`, if these are not 0 while
/// `at_leisure` too, then sleeps on the bell.
std::unique_ptr<Transport> shared_memory_transport(void* memory, int rank, int ranks, double spin_seconds,
                                                   std::function<bool()> at_leisure = {});

}  // namespace stepcast
