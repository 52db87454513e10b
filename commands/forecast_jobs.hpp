#pragma once

#include <string>
#include <vector>

#include "commands/forecast.hpp"

namespace stepcast {

/// One simulation: a point in one draw, or in the first with a resource doubled or without noise.
struct Job {
  std::size_t point = 0;
  std::size_t draw = 0;
  Doubled doubled = Doubled::none;
  Without without = Without::nothing;
};

/// Of the journal.
std::string name_of(const Scenario& scenario, const Job& job);

/// All points of all draws, then in the first draw each point with each resource doubled, and without its
/// noise.
std::vector<Job> jobs_of(const Scenario& scenario, const ForecastOptions& options, std::size_t draws);

/// Whether it is a point in a draw as it is.
bool is_forecast(const Job& job);

void store(Simulations& all, const Job& job, Row row);

}  // namespace stepcast
