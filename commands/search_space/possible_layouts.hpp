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
  int chunks = 1;                ///< of each stage; more than one: interleaved 1F1B
  int context = 1;               ///< devices that share the tokens of a sequence
  int tensor = 1;                ///< devices that share the layers of a stage
  int replicas = 1;              ///< workers / (stages x context x tensor)
  int expert = 1;                ///< devices of replicas and contexts that share experts
  int zero = 0;                  ///< ZeRO stage over the replicas
  std::int64_t micro_batch = 1;  ///< samples of a replica at once
  std::int64_t micro_batches = 1;
  enum class Recompute { none, operators, full } recompute = Recompute::none;
  bool equal_stages = true;        ///< of as many blocks each; false: of about equal times
  bool sequence_parallel = false;  ///< of the devices that share layers
};

/// All layouts of an experiment's workers and `samples` a step whose numbers divide: tensor parallelism
/// inside a node, in powers of two, of transformers with sequence parallelism; stages of equal numbers of
/// blocks, or a power of two of stages of about equal times; sequences shared by powers of two of devices,
/// each with at least 8,192 tokens; experts shared by powers of two of devices; micro-batches of 1, 2, 4, 8
/// and all samples of a replica. Layouts that differ only in what they compute again follow each other, the
/// least first.
std::vector<Layout> layouts_of(const Experiment& experiment, std::int64_t samples);

/// Layouts with the same division, but with stages of two chunks, or of as many as a stage has blocks, that
/// compute at least as much again. None if its numbers do not allow it.
std::vector<Layout> interleaved(const Layout& layout, const Model& model);

/// A layout as people name it, such as "pipeline 4, tensor 8, data 16, ZeRO 1, micro-batch 2, recompute
/// full".
std::string to_string(const Layout& layout);

/// The same without what is computed again.
std::string name_without_recompute(const Layout& layout);

/// "none", "operators" or "full", as the key `recompute` has them.
std::string to_string(Layout::Recompute recompute);

/// The assignments that give a scenario the layout, with all of its samples. Keys of its strategy that say
/// how to divide are replaced.
/// @param strategy  the mapping `strategy` of the scenario
std::vector<Assignment> values_of(const Layout& layout, const YamlNode& strategy);

/// `values` with those of a layout in place of what they and the document say about the batch.
/// @param strategy  the mapping `strategy` of the scenario with `values`
std::vector<Assignment> layout_values(const YamlNode& document, std::vector<Assignment> values,
                                      const Layout& layout, const YamlNode& strategy);

/// The layout nearest to plain replicas with which an experiment fits that does not, and that has its
/// samples: of the fewest stages, then of the fewest devices that share layers, of the least that is computed
/// again, and of the lowest ZeRO stage. Each is tried by building the experiment again.
/// @param values      those that give `experiment` with `document`
/// @param experiment  build_experiment(document, values, library)
/// @return the keys that change in the mapping `strategy`, such as "{kind: synchronous, shard: parameters}";
/// empty if none fits, or for a strategy that is not divided like this
std::string fitting_layout(const YamlNode& document, const std::vector<Assignment>& values,
                           const Experiment& experiment, Library& library);

}  // namespace stepcast
