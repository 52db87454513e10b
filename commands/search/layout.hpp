#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/yaml.hpp"
#include "scenarios/experiment/experiment.hpp"

namespace stepcast {

/// A way to divide the training of a network among devices.
struct Layout {
  int stages = 1;                ///< of the pipeline
  int tensor = 1;                ///< devices that share the layers of a stage
  int replicas = 1;              ///< workers / (stages x tensor)
  int expert = 1;                ///< replicas that share experts
  int zero = 0;                  ///< ZeRO stage over the replicas
  std::int64_t micro_batch = 1;  ///< samples of a replica at once
  std::int64_t micro_batches = 1;
  const char* recompute = "none";  ///< what is computed again in the backward pass
  bool equal_stages = true;        ///< of as many blocks each; false: of about equal times
  bool sequence_parallel = false;  ///< of the devices that share layers
};

/// All layouts of an experiment's workers and `samples` a step whose numbers divide: tensor parallelism
/// inside a node, in powers of two, of transformers with sequence parallelism; stages of equal numbers of
/// blocks; experts shared by powers of two of replicas; micro-batches of 1, 2, 4, 8 and all samples of a
/// replica. Layouts that differ only in what they compute again follow each other, the least first.
std::vector<Layout> layouts_of(const Experiment& experiment, std::int64_t samples);

/// A layout as people name it, such as "pipeline 4, tensor 8, data 16, ZeRO 1, micro-batch 2, recompute".
std::string to_string(const Layout& layout);

/// The same without what is computed again.
std::string name_without_recompute(const Layout& layout);

/// The assignments that give a scenario the layout, with all of its samples. Keys of its strategy that say
/// how to divide are replaced.
/// @param strategy  the mapping `strategy` of the scenario
std::vector<Assignment> values_of(const Layout& layout, const YamlNode& strategy);

}  // namespace stepcast
