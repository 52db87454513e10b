#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/cost/memory_options.hpp"
#include "models/partition/layer_partition.hpp"
#include "models/partition/pipeline_stages.hpp"
#include "models/partition/sequence_partition.hpp"
#include "models/partition/spatial_partition.hpp"
#include "strategies/mesh/recomputation.hpp"
#include "strategies/model_parallel/group_plan.hpp"
#include "strategies/options/strategy.hpp"
#include "strategies/plan/plan.hpp"

namespace stepcast {

inline constexpr std::int64_t kMostDevices = 100'000;

/// Sizes of the axes along which the devices of a run lie. Ranks count the tensor axis first, then context,
/// data and pipeline, as Megatron-LM's order tp-cp-ep-dp-pp and torchtitan's device mesh do.
struct Mesh {
  int pipeline = 1;
  int data = 1;
  int context = 1;  ///< devices that share a sample: its tokens, or its positions (`spatial`)
  int tensor = 1;   ///< devices that share the layers: transformer blocks, filters or machines' parts
  int filter = 1;   ///< as given; then `tensor` has this size
  int expert = 1;   ///< devices of the context and data axes that share the experts of a layer

  int copies() const { return data * context; }  ///< devices that hold the same part of the same layers
  int stage() const { return copies() * tensor; }
  /// Devices that work on the same samples; possibly more than there are workers.
  std::int64_t replica() const { return std::int64_t{pipeline} * context * tensor; }
  /// All devices, as a product that 64 bits may not hold. `copies` and `stage` need them to be the workers.
  double devices() const { return static_cast<double>(replica()) * data; }
};

/// An axis of the mesh, in the order in which ranks count.
enum class MeshAxis { tensor, context, data, pipeline };

/// How the devices of the tensor axis divide the layers.
enum class LayerDivision {
  blocks,    ///< transformer blocks by heads and hidden units (shard_tensor)
  filters,   ///< filters of every layer (shard_filters)
  machines,  ///< positions of maps and units of dense layers (`partition`, DistBelief)
};

/// Samples that batch-norm statistics cover: those of the devices of a sample, of each device, or of all.
enum class Statistics { group, local, all };

/// What lies in the memory of the host.
enum class Offload {
  none,
  optimizer,    ///< master weights and the optimizer's state, which the host updates
  activations,  ///< what blocks keep between their forward and their backward pass
};

/// Options of a step over a mesh of devices.
struct MeshOptions {
  GroupOptions group;
  Mesh mesh;
  LayerDivision division = LayerDivision::blocks;
  SpatialPartition spatial;  ///< the context axis divides the positions of each sample; no parts: its tokens
  Statistics batch_norm = Statistics::group;
  std::vector<MeshAxis> axes;  ///< as the devices lie, neighbours first; empty: in the order of the ranks
  PipelineOrder order = PipelineOrder::one_forward_one_backward;
  int chunks = 1;             ///< runs of layers in each stage
  bool equal_blocks = false;  ///< stages have as many blocks, where they need not take the same time
  Recompute recompute;
  bool recompute_last = true;  ///< with `recompute`: the last micro-batch is computed again too
  /// What the devices with the same layers partition among themselves (ZeRO 1 to 3, FSDP).
  MemoryOptions::Zero shard = MemoryOptions::Zero::none;
  /// Devices that share a partition: all copies, or those of a node (hybrid sharding).
  int shard_ways = 1;
  /// Parameters are freed after a forward pass and gathered again; false: gathered once a step.
  bool reshard = true;
  bool sequence_parallel = false;  ///< the tensor axis divides the tokens between shared layers
  ContextExchange context_exchange = ContextExchange::ring;
  bool has_experts = false;
  Experts experts;
  bool half_parameters = false;  ///< see MemoryOptions
  Offload offload = Offload::none;
  /// Bandwidth of a device's share of host memory, and of its link, with `offload`.
  BytesPerSecond host_memory, host_link;
  /// With recomputation the host waits for the device before each block, and after each exchange in it.
  bool synchronizes_checkpoints = false;
  bool blocks = false;         ///< units that are gathered together are the network's blocks; false: buckets
  bool fp32_gradients = true;  ///< with `precision: mixed`, where the key exists
  Bytes gradient;              ///< size of an element in sums of gradients
  bool group_columns = false;  ///< results have the columns of devices that share samples or layers
  std::string scatters;        ///< "with zero: 1": why gradients have no all-reduce; empty: they have

  /// Of each layer of a device's part, once this is known.
  std::vector<RecomputedLayer> recomputed;

  /// Share of the micro-batches that are computed again in the backward pass.
  double recomputed_share() const {
    return recompute.any() ? 1 - (recompute_last ? 0.0 : 1.0 / group.micro_batches) : 0;
  }
  bool divides_positions() const { return !spatial.parts.empty(); }
  /// Micro-batches enter at both ends, and every stage has the layers of two.
  bool dual() const { return order == PipelineOrder::dual_pipe; }
  /// Gradients of weights are computed in passes of their own.
  bool splits_backward() const { return dual() || order == PipelineOrder::zero_bubble; }
  int runs() const { return mesh.pipeline * (dual() ? 1 : chunks); }  ///< runs of layers
  /// Micro-batches of a step that pass a chunk.
  int micro_batches_of_chunk() const { return group.micro_batches / (dual() ? 2 : 1); }
  bool shards_parameters() const { return shard == MemoryOptions::Zero::parameters; }
  /// The pass waits for each scatter of gradients, as DeepSpeed's does with `overlap_comm: false`.
  bool waits_for_scatters() const { return shard >= MemoryOptions::Zero::gradients && !group.overlap; }
  /// No device keeps whole gradients, so they are scattered after every micro-batch.
  bool sums_every_micro_batch() const { return shard >= MemoryOptions::Zero::gradients && reshard; }
};

/// Keys of experts that a network has, or that replace hidden layers of its blocks.
const Keys& expert_keys();
void read_experts(const YamlMap& map, const Model& model, MeshOptions& options);

/// Keys that `kind: synchronous` has for a mesh.
const Keys& mesh_keys();
/// All keys that `kind: synchronous` takes with one of mesh_keys().
Keys keys_over_mesh();
/// Options of `kind: synchronous` with one of mesh_keys(). @throws InputError if the axes do not make up the
/// workers, or for a key that a mesh does not have
MeshOptions read_mesh_options(const YamlMap& map, const Setting& setting);

/// The keys of the axes, which are named where the network cannot be divided along them.
struct MeshKeys {
  YamlValue pipeline, context, tensor, expert;
};

/// Divides the network over the mesh, whose data axis is the rest of the workers, and gives every stage its
/// program.
Plan plan_mesh(const YamlMap& map, const MeshKeys& keys, const Setting& setting, MeshOptions options);

/// True if the mapping of `kind: synchronous` has a key that only a mesh has.
bool names_mesh(const YamlNode& strategy);

/// `kind: synchronous`: with one of mesh_keys() a step over a mesh of devices, else plain data parallelism.
Strategy synchronous_over_mesh();

// Short words for a mesh.
Strategy zero_strategy();
Strategy pipeline_strategy();
Strategy spatial_strategy();
Strategy filter_parallel_strategy();
Strategy tensor_strategy();
Strategy mixture_of_experts_strategy();
Strategy model_parallel_strategy();

}  // namespace stepcast
