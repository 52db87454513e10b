#pragma once

#include <vector>

#include "core/keys.hpp"
#include "core/yaml.hpp"
#include "models/cost/memory_options.hpp"
#include "models/network/model.hpp"
#include "strategies/model_parallel/group_plan.hpp"
#include "strategies/model_parallel/layer_segments.hpp"
#include "strategies/plan/plan.hpp"

namespace stepcast {

/// What a backward pass computes again.
struct Recompute {
  enum class Kind {
    none,
    selective,  ///< Megatron-LM's: the core of attention, between its projections
    operators,  ///< torchtitan's: all but attention and every second product
    full,       ///< the blocks: only their inputs stay
    stage,      ///< GPipe's: all layers of a stage; only its input stays
  };

  Kind kind = Kind::none;
  int every = 1;            ///< full: every block, every second, ...
  bool early_stop = false;  ///< full: not the end of a block, whose outputs no backward pass reads

  bool any() const { return kind != Kind::none; }
};

/// The key `recompute` of a mesh.
Key recompute_key();

/// That key and `early_stop`.
Keys recompute_keys();

/// @param order  gpipe: `true` means stage, else full
Recompute read_recompute(const YamlMap& map, PipelineOrder order);

/// How each layer of the part is computed again; empty: none is. Sources: V. Korthikanti et al., "Reducing
/// activation recomputation in large transformer models", MLSys 2023, section 5 (selective); Megatron-LM,
/// --recompute-granularity; torchtitan, torchtitan/models/llama3/parallelize_llama.py, apply_ac
/// (`_save_list`: flash attention, reduce-scatters and every second product; every N-th block); Y. Huang et
/// al., "GPipe", NeurIPS 2019, section 2.3 (stage).
std::vector<RecomputedLayer> recomputed_layers(const Model& part, const Recompute& recompute);

/// The forward passes of these layers that are computed again. The share of a layer that is not all of it is
/// a segment that add_shares appends to the workload.
PassSegments make_recomputation(const std::vector<RecomputedLayer>& how, LayerRange layers,
                                const GroupPlan& groups);

/// True if the share of a layer that is computed again is neither all nor nothing.
bool has_shares(const std::vector<RecomputedLayer>& how);

/// Appends a segment for each of `layers` layers, with the share of its forward pass that is computed again.
void add_shares(const std::vector<RecomputedLayer>& how, std::size_t layers, Workload& workload);

}  // namespace stepcast
