#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "commands/search/search_scenario.hpp"
#include "core/yaml.hpp"
#include "scenarios/experiment/experiment.hpp"

namespace stepcast {

/// `search --layouts`: simulates every layout of the scenario's workers that fits into memory, prints the
/// fastest ones and writes all to layouts.csv.
/// @throws InputError if none fits
void search_layouts(const SearchCommand& command, const SearchedScenario& searched, Library& library);

/// A way to divide the training of a network among devices.
struct Layout {
  int stages = 1;                ///< of the pipeline
  int tensor = 1;                ///< devices that share the layers of a stage
  int replicas = 1;              ///< workers / (stages x tensor)
  int zero = 0;                  ///< ZeRO stage over the replicas
  std::int64_t micro_batch = 1;  ///< samples of a replica at once
  std::int64_t micro_batches = 1;
  bool recompute = false;  ///< activations are computed again in the backward pass
};

/// All layouts of an experiment's workers and `samples` a step whose numbers divide: tensor parallelism
/// inside a node, in powers of two; stages of equal numbers of blocks; micro-batches of 1, 2, 4, 8 and all
/// samples of a replica.
std::vector<Layout> layouts_of(const Experiment& experiment, std::int64_t samples);

/// A layout as people name it, such as "pipeline 4, tensor 8, data 16, ZeRO 1, micro-batch 2, recompute".
std::string to_string(const Layout& layout);

/// The assignments that give a scenario the layout. Keys of its strategy that say how to divide are replaced.
/// @param strategy  the mapping `strategy` of the scenario
std::vector<Assignment> values_of(const Layout& layout, const YamlNode& strategy);

}  // namespace stepcast
