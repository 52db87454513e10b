#include "strategies/mesh/stages.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/fields.hpp"
#include "models/layer_times/trace.hpp"

namespace stepcast {
namespace {

/// Where a stage keeps nothing but its input, the slowest may take this much more for a smaller one: assumed.
constexpr double kStageSlack = 1.05;

const Fields<MeshOptions>& stage_fields() {
  using Options = MeshOptions;
  using Order = PipelineOrder;
  static const Fields<Options> fields{
      renamed(field<Options>({"split_points", KeyType::layers, "the fastest division",
                              "names of the first layers of stages 2, 3, ..."}),
              "cuts"),
      field("split", &Options::equal_blocks, choice<bool>({{"time", false}, {"blocks", true}}),
            "how layers are divided without split_points: into stages that take the same time, or that have "
            "as many blocks"),
      field("schedule", &Options::order,
            choice<Order>({{"naive", Order::naive},
                           {"gpipe", Order::gpipe},
                           {"1f1b", Order::one_forward_one_backward},
                           {"interleaved", Order::interleaved},
                           {"zero_bubble", Order::zero_bubble},
                           {"dual_pipe", Order::dual_pipe}}),
            "order of the passes of a stage"),
      field("chunks", &Options::chunks, integer(2, 1000), otherwise("required with interleaved"),
            "interleaved: number of groups of consecutive layers in each stage"),
      field("recompute_last", &Options::recompute_last, boolean(),
            "recompute: whether the last micro-batch is computed again too"),
      field("synchronize_checkpoints", &Options::synchronizes_checkpoints, boolean(),
            "recompute: whether the host waits for the device at each block, as with DeepSpeed's "
            "`synchronize_checkpoint_boundary`, and after each exchange inside it")};
  return fields;
}

void check_dual(const YamlMap& map, const char* micro_batches, const MeshOptions& options) {
  const int stages = options.mesh.pipeline, count = options.group.micro_batches;
  if (stages % 2 != 0)
    map.at("schedule").refuse(fmt::format("dual_pipe needs an even number of stages, got {}", stages));
  if (count % 2 != 0 || count < 2 * stages)
    map.at(map.has(micro_batches) ? micro_batches : "schedule")
        .refuse(fmt::format("dual_pipe needs an even number of micro-batches, at least {}, got {}",
                            2 * stages, count));
  using Kind = Recompute::Kind;  // two chunks compute together, so blocks cannot be computed again in turn
  if (options.recompute.any() && options.recompute.kind != Kind::selective &&
      options.recompute.kind != Kind::operators)
    map.at("recompute").expected("selective or operators, with schedule: dual_pipe");
  // The two stages with the same layers start their scatters in different orders, and would wait for ever.
  if (options.waits_for_scatters())
    map.at("overlap").refuse("false is not valid with schedule: dual_pipe where gradients are partitioned");
}

void check_chunks(const YamlMap& map, const char* micro_batches, const MeshOptions& options) {
  if (options.order != PipelineOrder::interleaved) {
    if (map.has("chunks")) map.at("chunks").refuse("only valid with schedule: interleaved");
    return;
  }
  map.at("chunks", "chunks of layers that each stage has, an integer >= 2");
  const int stages = options.mesh.pipeline, count = options.group.micro_batches;
  if (stages == 1) map.at("schedule").refuse("interleaved needs stages >= 2, got 1");
  if (count % stages != 0) {
    map.at(map.has(micro_batches) ? micro_batches : "schedule")
        .refuse(fmt::format("interleaved needs a multiple of the {} stages, got {} micro-batches", stages,
                            count));
  }
}

}  // namespace

const Keys& stage_keys() {
  return stage_fields().keys();
}

void read_stages(const YamlMap& map, const char* micro_batches, MeshOptions& options) {
  read_fields(map, stage_fields(), options);
  options.recompute = read_recompute(map, options.order);
  if (!options.recompute.any()) {
    options.synchronizes_checkpoints = false;
    if (map.has("recompute_last")) map.at("recompute_last").refuse("only valid with recompute");
  }
  check_chunks(map, micro_batches, options);
  if (options.dual()) check_dual(map, micro_batches, options);
  if (options.dual()) options.chunks = 2;
}

namespace {

/// Runs of as many blocks each. The first also has the layers before the blocks, the last those after them.
/// Both count as a block where only then all runs have as many (Megatron-LM,
/// --account-for-embedding-in-pipeline-split): 126 blocks are 128 for 64 runs.
Stages equal_blocks(const YamlValue& split, const Model& model, int runs) {
  const std::size_t blocks = model.blocks.size(), count = runs;
  const bool has_ends = blocks > 0 && model.blocks.front().first > 0 &&
                        model.blocks.back().last < std::ssize(model.layers);  // for runs of their own
  const bool counts = blocks % count != 0 && (blocks + 2) % count == 0 && (blocks + 2 > count || has_ends);
  const std::size_t ends = counts ? 1 : 0;
  if (count > 1 && (blocks == 0 || (blocks + 2 * ends) % count != 0))
    split.refuse(
        fmt::format("{} blocks cannot be divided equally among {} stages; give split: time or "
                    "split_points",
                    blocks, runs));
  Stages starts{0};
  const std::size_t each = (blocks + 2 * ends) / count;
  for (std::size_t run = 1; run < count; ++run) {
    const std::size_t block = run * each - ends;
    starts.push_back(block < blocks ? model.blocks[block].first : model.blocks.back().last);
  }
  starts.push_back(model.layers.size());
  return starts;
}

}  // namespace

Stages first_layers_of_runs(const YamlMap& map, const YamlValue& stages, const Setting& setting,
                            const Trace& times, const MeshOptions& options) {
  const int runs = options.runs();
  const auto named = map.maybe("split_points");
  if (!named && options.equal_blocks) return equal_blocks(map.at("split"), setting.model, runs);
  if (!named) {
    std::vector<double> seconds;
    for (const LayerTrace& layer : times.layers) {
      seconds.push_back(median(layer.forward.seconds).value + median(layer.backward_data.seconds).value +
                        median(layer.backward_weights.seconds).value);
    }
    if (seconds.size() < static_cast<std::size_t>(runs))
      stages.refuse(fmt::format("{} layers cannot form {} stages", seconds.size(), runs));
    const Stages balanced = balanced_stages(setting.model, seconds, runs);
    const bool keeps_boundaries = options.recompute.kind == Recompute::Kind::stage;
    return keeps_boundaries ? with_small_boundaries(setting.model, seconds, balanced, kStageSlack) : balanced;
  }
  Stages starts{0};
  for (const YamlValue& name : named->list()) {
    const auto& layers = setting.model.layers;
    const auto found = std::find_if(layers.begin() + starts.back(), layers.end(),
                                    [&](const Layer& layer) { return layer.name == name.text(); });
    if (found == layers.end() || found == layers.begin() + starts.back())
      name.expected("the first layer of a stage, after that of the stage before");
    starts.push_back(found - layers.begin());
  }
  if (std::ssize(starts) != runs) named->expected(fmt::format("the first layers of stages 2 to {}", runs));
  starts.push_back(setting.model.layers.size());
  return starts;
}

}  // namespace stepcast
