#include "commands/forecast_jobs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace stepcast {
namespace {

constexpr std::array kDoubled{Doubled::compute, Doubled::bandwidth, Doubled::latency};
constexpr std::array kLeftOut{Without::jitter, Without::noise};

/// What sets the simulation apart from the point as it is.
std::string variant(const Job& job) {
  if (job.doubled == Doubled::latency) return "half the latency";
  if (job.doubled != Doubled::none) return std::string("twice the ") + to_string(job.doubled);
  if (job.without == Without::nothing) return "as it is";
  return job.without == Without::jitter ? "without jitter" : "without noise";
}

}  // namespace

std::string name_of(const Scenario& scenario, const Job& job) {
  return fmt::format("{} | draw {} | {}", scenario.points[job.point].name, job.draw, variant(job));
}

std::vector<Job> jobs_of(const Scenario& scenario, const ForecastOptions& options, std::size_t draws) {
  std::vector<Job> jobs;
  for (std::size_t draw = 0; draw < draws; ++draw) {
    for (const std::size_t point : options.points) jobs.push_back({point, draw});
  }
  for (const std::size_t point : options.points) {
    if (!options.what_if) break;
    for (const Doubled resource : kDoubled) jobs.push_back({point, 0, resource});
    for (const Without what : kLeftOut) {
      if (may_change(scenario, what)) jobs.push_back({point, 0, Doubled::none, what});
    }
  }
  return jobs;
}

bool is_forecast(const Job& job) {
  return job.doubled == Doubled::none && job.without == Without::nothing;
}

void store(Simulations& all, const Job& job, Row row) {
  if (is_forecast(job)) {
    all.rows[job.draw][job.point] = std::move(row);
  } else if (job.without == Without::nothing) {
    all.doubled[job.point][job.doubled] = std::move(row);
  } else if (row.number("step_seconds")) {
    all.without[job.point][job.without] = std::move(row);
  }
}

int extra_simulations(const Scenario& scenario) {
  const auto changes = [&](Without what) { return may_change(scenario, what); };
  return static_cast<int>(kDoubled.size()) + static_cast<int>(std::ranges::count_if(kLeftOut, changes));
}

}  // namespace stepcast
