#pragma once

#include <string>

#include "report/plot_scaling.hpp"
#include "report/results.hpp"

namespace stepcast {

/// A column and its interval, where it has one.
PlottedValue plotted(const Row& row, const std::string& column);

}  // namespace stepcast
