#include <algorithm>
#include <set>

#include "models/cost/memory.hpp"
#include "models/cost/pass_cost.hpp"
#include "strategies/mesh/offload.hpp"
#include "strategies/mesh/stage_plan.hpp"

namespace stepcast {
namespace {

LayerRange layers_of(LayerRange segments) {
  return {segments.first / kSegmentsPerLayer, segments.last / kSegmentsPerLayer};
}

/// Bytes of the parameters of two units next to each other, of which one computes while the other arrives.
Bytes gathered_parameters(const Model& part, LayerRange layers, const MeshOptions& options) {
  double before = 0, most = 0;
  for (const LayerRange& unit : sharded_units(part, layers, options)) {
    const double count = all_parameters(stage_model(part, unit.first, unit.last));
    most = std::max(most, before + count);
    before = count;
  }
  return most * options.group.training.element();
}

/// Adds what FSDP holds beside its partition: gathered parameters, and gradients before their scatter.
void add_unsharded(const Model& part, const PipelineStage& stage, const MeshOptions& options, Memory& sum) {
  double all = 0, largest = 0;
  for (const PipelineChunk& chunk : stage.chunks) {
    const LayerRange layers = layers_of(chunk.segments);
    sum.gathered = std::max(sum.gathered, gathered_parameters(part, layers, options));
    for (const LayerRange& unit : sharded_units(part, layers, options)) {
      const double count = all_parameters(stage_model(part, unit.first, unit.last));
      all += count;
      largest = std::max(largest, count);
    }
  }
  const Bytes element = options.group.training.element();
  if (!options.reshard) sum.gathered = all * element;
  const bool accumulates = !options.reshard && stage.micro_batches > 1;
  sum.gradients += accumulates ? all * options.gradient : largest * element;
}

/// What Transformer Engine returns to autograd in place of gradients that its products have added to the fp32
/// ones: a tensor of 2 B for each shape of weight, which stays. Source:
/// transformer_engine/pytorch/module/base.py, get_dummy_wgrad; Megatron-Core, tensor_parallel/layers.py, for
/// the vocabulary.
Bytes placeholder_gradients(const Model& part, LayerRange layers) {
  std::set<Shape> shapes;
  for (int i = layers.first; i < layers.last; ++i) {
    const Layer& layer = part.layers[i];
    if (layer.kind != LayerKind::dense && layer.kind != LayerKind::experts) continue;
    for (const ParameterTensor& tensor : layer.parameters) {
      const bool of_experts = tensor.shape.size() > 2;  // each expert has a weight of its own
      if (tensor.shape.size() > 1) shapes.insert({tensor.shape.begin() + of_experts, tensor.shape.end()});
    }
  }
  double count = 0;
  for (const Shape& shape : shapes) count += elements(shape);
  return {kHalfBytes * count};
}

MemoryOptions memory_options(const MeshOptions& options, const GroupPlan& groups) {
  MemoryOptions memory = groups.memory;
  memory.zero_ways = options.shard_ways;
  if (memory.zero_ways > 1) memory.zero = options.shard;
  memory.fp32_gradients = options.gradient > options.group.training.element();
  memory.half_parameters = options.half_parameters;
  memory.host_optimizer = options.offload == Offload::optimizer;
  memory.expert_ways = options.mesh.expert;
  // FSDP beside tensor parallelism is PyTorch's, whose parallelize_module divides the loss (loss_parallel).
  memory.divided_vocabulary = options.mesh.tensor > 1 && options.shards_parameters() &&
                              memory.cross_entropy == KernelChoice::CrossEntropy::log_softmax;
  memory.keeps_last = options.recompute.any() && !options.recompute_last;
  return memory;
}

/// Sets how the layers of a range are computed again.
void set_recomputed(const MeshOptions& options, LayerRange layers, MemoryOptions& memory) {
  if (options.recomputed.empty()) return;
  memory.recomputed = {options.recomputed.begin() + layers.first, options.recomputed.begin() + layers.last};
}

/// Leaves of a chunk's activations those outside blocks, and those of two blocks: one computes while the
/// other is copied.
void move_to_host(const std::vector<Bytes>& kept, LayerRange layers, int in_flight, Memory& chunk) {
  Bytes all, largest;
  for (int i = layers.first; i < layers.last; ++i) {
    all += kept[static_cast<std::size_t>(i)];
    largest = std::max(largest, kept[static_cast<std::size_t>(i)]);
  }
  const Bytes moved = std::max(Bytes{}, in_flight * all - 2 * largest);
  chunk.activations = chunk.activations - moved;
  chunk.swapped += moved;
}

}  // namespace

std::vector<Bytes> kept_of_blocks(const MeshOptions& options, const GroupPlan& groups) {
  if (options.offload != Offload::activations) return {};
  const Model& part = groups.kept;
  MemoryOptions memory = memory_options(options, groups);
  std::vector<Bytes> kept(part.layers.size());
  for (const LayerBlock& block : part.blocks) {
    const Model alone = stage_model(part, block.first, block.last);
    set_recomputed(options, {block.first, block.last}, memory);
    const auto held = [&](int in_flight) {
      memory.in_flight = in_flight;
      return training_memory(alone, memory).activations;
    };
    kept[static_cast<std::size_t>(block.last - 1)] = held(2) - held(1);
  }
  return kept;
}

Memory stage_memory(const MeshOptions& options, const PipelineStage& stage,
                    const std::vector<Bytes>& offloaded, const GroupPlan& groups) {
  MemoryOptions memory = memory_options(options, groups);
  const std::vector<int> held = most_in_flight(stage.actions, options.chunks);
  Memory sum;
  for (std::size_t i = 0; i < stage.chunks.size(); ++i) {
    const LayerRange layers = layers_of(stage.chunks[i].segments);
    memory.in_flight = held[i];
    set_recomputed(options, layers, memory);
    Memory chunk = training_memory(stage_model(groups.kept, layers.first, layers.last), memory);
    if (!offloaded.empty()) move_to_host(offloaded, layers, held[i], chunk);
    sum.weights += chunk.weights;
    sum.gradients += chunk.gradients;
    sum.optimizer_state += chunk.optimizer_state;
    sum.activations += chunk.activations;
    sum.input += chunk.input;
    sum.error_signals = std::max(sum.error_signals, chunk.error_signals);
    sum.workspace = std::max(sum.workspace, chunk.workspace);
    sum.allocator += chunk.allocator;
    sum.swapped += chunk.swapped;
  }
  if (memory.fp32_gradients && memory.gradient_sums == KernelChoice::GradientSums::fused)
    for (const PipelineChunk& chunk : stage.chunks)
      sum.workspace += placeholder_gradients(groups.sharded.part, layers_of(chunk.segments));
  if (memory.zero == MemoryOptions::Zero::parameters) add_unsharded(groups.sharded.part, stage, options, sum);
  return sum;
}

}  // namespace stepcast
