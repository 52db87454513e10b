#pragma once

#include "runtime/transport/transport.hpp"

namespace stepcast {

/// How far the clock of this rank (`now`) is ahead of that of rank 0 [s], give or take half of the shortest
/// round trip; 0 on rank 0. All ranks call it at once. Clocks of different machines drift apart by some 10 us
/// a second, so it is measured anew for each run.
double clock_offset_to_rank_0(Transport& transport);

}  // namespace stepcast
