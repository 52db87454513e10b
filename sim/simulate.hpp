#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/timeline.hpp"
#include "platforms/platform.hpp"
#include "strategies/conditions.hpp"
#include "strategies/worker.hpp"

namespace stepcast {

/// Everything a simulation needs. Plain data; it refers to platform and workload, which outlive it.
struct Simulation {
  const Platform* platform = nullptr;
  std::vector<BytesPerSecond> bandwidths;  ///< of every link of the platform's topology
  std::vector<int> devices;                ///< of each worker, in rank order
  int ranks_per_node = 1;                  ///< 1 unless every node in use holds as many consecutive ranks
  const Workload* workload = nullptr;
  std::function<Program(Worker&)> program;
  Communication communication;
  double latency_factor = 1;  ///< on every latency and message overhead of the network
  bool load_data = false;     ///< input comes from the platform's storage
  Noise noise;
  std::uint64_t seed = 1;
  Form form = Form::automatic;
  bool fold = true;  ///< equal workers share one program; off: a program each (the oracle)
  bool timeline = false;
};

/// Where the time of one step went. seconds = compute + straggler + loading + exposed.
struct StepSeconds {
  double seconds = 0;
  double compute = 0;        ///< mean over workers
  double straggler = 0;      ///< of the slowest worker beyond the mean
  double loading = 0;        ///< waiting for input
  double exposed = 0;        ///< communication that compute did not hide, slow-down of compute included
  double communication = 0;  ///< sum of the durations of all collectives
};

struct SimulationResult {
  std::vector<StepSeconds> steps;
  std::string form;        ///< that ran
  std::string algorithms;  ///< of the all-reduces, such as "ring" or "double_tree, ring"
  std::int64_t events = 0, flows = 0;
  Timeline timeline;
};

/// Runs the program of every worker on the simulated cluster. One call a process (Engine).
/// @throws std::logic_error if programs wait for each other for ever
SimulationResult simulate(const Simulation& simulation);

}  // namespace stepcast
