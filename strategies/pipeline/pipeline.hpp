#pragma once

#include "strategies/options/strategy.hpp"

namespace stepcast {

Strategy pipeline_strategy();

}  // namespace stepcast
