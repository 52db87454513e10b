#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/memory.hpp"
#include "platforms/platform.hpp"
#include "scenarios/library.hpp"
#include "strategies/conditions.hpp"
#include "strategies/synchronous.hpp"

namespace stepcast {

/// One run, ready to be simulated: everything that a point of a scenario means. Plain data.
struct Experiment {
  Model model;
  Device device;
  Platform platform;
  std::vector<BytesPerSecond> bandwidths;  ///< of every link, after background traffic
  std::vector<int> devices;                ///< of each worker, in rank order
  int ranks_per_node = 1;                  ///< 1 unless every node in use holds as many consecutive ranks
  Workload workload;
  Synchronous strategy;
  Communication communication;
  Noise noise;
  Form form = Form::automatic;
  bool fold = true;
  bool load_data = false;
  std::uint64_t seed = 1;

  int workers = 1;
  std::int64_t batch_per_worker = 1;  ///< samples a step of one worker, all its micro-batches
  double epoch_samples = 0;           ///< 0: not given
  double epochs = 0;                  ///< 0: not given
  std::string trace_kind;             ///< "captured", "derived", "captured, scaled" ...
  std::vector<std::string> flags;     ///< doubts that the traces carry
  Memory memory;
  bool fits = true;
};

/// Reads `document` with `values` set in it, shallow paths first. Keys: docs/scenarios.md. Throws InputError.
Experiment build_experiment(YamlNode document, std::vector<Assignment> values, Library& library);

}  // namespace stepcast
