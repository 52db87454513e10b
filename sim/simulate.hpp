#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/timeline.hpp"
#include "platforms/link_bandwidths.hpp"
#include "sim/worker_memory.hpp"
#include "strategies/conditions.hpp"
#include "strategies/plan.hpp"

namespace stepcast {

/// Everything a simulation needs. Plain data; it refers to platform and plan, which outlive it.
struct Simulation {
  const Platform* platform = nullptr;
  LinkBandwidths bandwidths;
  const Plan* plan = nullptr;
  double latency_factor = 1;  ///< on every latency and message overhead of the network
  double compute_factor = 1;  ///< on all compute and arithmetic, not on pauses
  Noise noise;
  std::uint64_t seed = 1;
  Form form = Form::automatic;
  Folding fold = Folding::automatic;  ///< equal workers share one program; never: one each (the oracle)
  bool timeline = false;
  WorkerMemories memories;  ///< not empty: it learns, unfolded
};

/// Where the time of one step went. seconds = compute + straggler + loading + exposed.
struct StepSeconds {
  double seconds = 0;
  double compute = 0;    ///< mean over workers
  double straggler = 0;  ///< of the slowest worker beyond the mean
  double loading = 0;    ///< waiting for input
  double exposed = 0;    ///< communication that compute did not hide, slow-down of compute included
  double communication =
      0;  ///< sum of the durations of all collectives of a group, and of a worker's messages
};

struct SimulationResult {
  std::vector<StepSeconds> steps;  ///< an asynchronous plan has one: the mean of its steady state
  Records records;
  /// Of an asynchronous plan: how many of them, by name, until one worker had ended all its steps.
  std::map<std::string, std::size_t> steady_counts;
  double seconds = 0;      ///< of the whole run
  std::string form;        ///< that ran
  std::string folding;     ///< "folded", "folded, closely", "folded, roughly" or "unfolded"
  std::string algorithms;  ///< of the all-reduces, such as "ring" or "double_tree, ring"
  std::int64_t events = 0, flows = 0;
  std::int64_t routes = 0;       ///< worked out before the run, edge by edge of all schedules looked at
  std::int64_t clock_moves = 0;  ///< of workers, layer by layer where every layer has a jitter of its own
  Timeline timeline;
};

/// Runs the program of every worker on the simulated cluster. One call a process (Engine).
/// @throws std::logic_error if programs wait for each other for ever
SimulationResult simulate(const Simulation& simulation);

}  // namespace stepcast
