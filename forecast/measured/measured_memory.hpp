#pragma once

#include <string>
#include <vector>

#include "forecast/simulations.hpp"
#include "scenarios/reader/library.hpp"
#include "scenarios/reader/scenario.hpp"

namespace stepcast {

/// The column of the memory that one device needs.
constexpr const char* kMemoryColumn = "memory_bytes";

/// Carries measured memory over to other points: multiplies memory_bytes in every draw, with `fits` and
/// `why_not`, and sets Simulations::memory_factors. log(measured / counted memory) is a normal level that all
/// points have in common and an error that points of one layout with one batch per worker have in common.
/// Their standard deviations, 6.5 and 5 %, have the highest likelihood for
/// docs/explanation/memory-measured.csv, whose programs (network, precision, device) are the scenarios and
/// whose batches are the points. Without a measurement of memory, nothing changes.
/// @param points  those that have results
void learn_memory(const Scenario& scenario, const std::vector<std::size_t>& points, Library& library,
                  Simulations& all);

/// Each measurement of memory beside what is counted and forecast, and by how much other points are changed.
std::vector<std::string> measured_memory_lines(const Scenario& scenario, const Simulations& all);

}  // namespace stepcast
