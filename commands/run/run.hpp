#pragma once

#include <filesystem>
#include <string>

#include "forecast/forecast.hpp"
#include "forecast/forecast_options.hpp"

namespace stepcast {

/// Simulates scenarios, writes their results and prints tables.
void run(const RunOptions& options);

}  // namespace stepcast
