#pragma once

#include "strategies/collectives/schedule.hpp"
#include "validate/link_table.hpp"

namespace stepcast {

/// What a schedule takes alone where each rank has a link of its own each way, rounds in lock step.
Seconds schedule_time(const Schedule& schedule, const LinkTable& links, Bytes buffer);

}  // namespace stepcast
