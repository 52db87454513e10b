#include "strategies/mesh/mesh.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "models/layer_times/trace.hpp"
#include "strategies/data_parallel/synchronous.hpp"

namespace stepcast {
namespace {

constexpr std::int64_t kMostDevices = 100'000;
/// Where a stage keeps nothing but its input, the slowest may take this much more for a smaller one: assumed.
constexpr double kStageSlack = 1.05;

Keys stage_keys() {
  return {renamed({"split_points", "list of layer names", "", "the fastest division",
                   "names of the first layers of stages 2, 3, ..."},
                  "cuts"),
          {"split", "name", "time, blocks", "time",
           "how layers are divided without split_points: into stages that take the same time, or that have "
           "as many blocks"},
          {"schedule", "name", "naive, gpipe, 1f1b, interleaved, zero_bubble", "1f1b",
           "order of the passes of a stage"},
          {"chunks", "integer", "2 to 1000", "required with interleaved",
           "interleaved: number of groups of consecutive layers in each stage"},
          {"recompute_last", "boolean", "", "true",
           "recompute: whether the last micro-batch is computed again too"},
          {"synchronize_checkpoints", "boolean", "", "false",
           "recompute: whether the host waits for the device at each block, as with DeepSpeed's "
           "`synchronize_checkpoint_boundary`, and after each exchange inside it"}};
}

Keys make_pipeline_keys() {
  Keys keys =
      joined_keys({group_keys(),
                   {{"stages", "integer", "1 to 1e5", "required", "stages of layers"},
                    {"micro_batches", "integer", "1 to 1e5", "1", "micro-batches in a step"},
                    {"tensor", "integer", "1 to 1e5", "1", "devices that share the layers of a stage"},
                    {"zero", "integer", "0 to 2", "0", "ZeRO stage over the replicas of a stage"},
                    part_trace_key()},
                   stage_keys()});
  *std::ranges::find(keys, "recompute", &Key::name) = recompute_key();
  // The reader accepts this key of other strategies to say which key to use.
  std::ranges::find(keys, "accumulation", &Key::name)->meaning = "not valid: give micro_batches";
  return keys;
}

/// Reads `schedule`, `chunks`, `recompute`, `recompute_last` and `synchronize_checkpoints`.
/// @param micro_batches  name of the key that gives their number
void read_order(const YamlMap& map, const char* micro_batches, MeshOptions& options) {
  if (const auto order = map.maybe("schedule"))
    options.order =
        static_cast<PipelineOrder>(order->one_of({"naive", "gpipe", "1f1b", "interleaved", "zero_bubble"}));
  if (const auto again = map.maybe("recompute")) options.recompute = read_recompute(*again, options.order);
  if (const auto waits = map.maybe("synchronize_checkpoints"))
    options.synchronizes_checkpoints = waits->boolean() && options.recompute.any();
  const bool interleaved = options.order == PipelineOrder::interleaved;
  if (const auto chunks = map.maybe("chunks")) {
    options.chunks = static_cast<int>(chunks->integer(2, 1000));
    if (!interleaved) chunks->refuse("only valid with schedule: interleaved");
  } else if (interleaved) {
    map.at("chunks", "chunks of layers that each stage has, an integer >= 2");
  }
  if (const auto last = map.maybe("recompute_last")) {
    options.recompute_last = last->boolean();
    if (!options.recompute.any()) last->refuse("only valid with recompute");
  }
  const int stages = options.mesh.pipeline, count = options.group.micro_batches;
  if (interleaved && stages == 1) map.at("schedule").refuse("interleaved needs stages >= 2, got 1");
  if (interleaved && count % stages != 0) {
    map.at(map.has(micro_batches) ? micro_batches : "schedule")
        .refuse(fmt::format("interleaved needs a multiple of the {} stages, got {} micro-batches", stages,
                            count));
  }
}

}  // namespace

const Keys& pipeline_keys() {
  static const Keys keys = make_pipeline_keys();
  return keys;
}

MeshOptions read_pipeline_options(const YamlMap& map) {
  MeshOptions options;
  options.group = read_mesh_group_options(map);
  options.gradient = options.group.training.element();
  const auto count = [&](const char* key) { return static_cast<int>(map.at(key).integer(1, kMostDevices)); };
  map.at("stages", "an integer >= 1");
  options.mesh.pipeline = count("stages");
  if (map.has("tensor")) options.mesh.tensor = count("tensor");
  if (map.has("micro_batches")) options.group.micro_batches = count("micro_batches");
  read_order(map, "micro_batches", options);
  if (const auto zero = map.maybe("zero")) {
    options.shard = static_cast<MemoryOptions::Zero>(zero->integer(0, 2));
    if (options.shard != MemoryOptions::Zero::none) options.scatters = "with zero: " + zero->text();
    if (options.shard == MemoryOptions::Zero::gradients && !options.group.overlap)
      zero->refuse(
          "2 is only valid with overlap: true, because gradients are scattered during every backward pass");
  }
  return options;
}

namespace {

const Keys& axis_keys() {
  static const Keys keys{
      {"pipeline", "integer", "1 to 1e5", "1", "stages of layers"},
      {"data", "integer", "1 to 1e5", "the rest of the workers", "replicas of the network"},
      {"context", "integer", "1 to 1e5", "1", "devices that share the tokens of a sequence"},
      {"tensor", "integer", "1 to 1e5", "1", "devices that share the layers of a stage"},
      {"expert", "integer", "1 to 1e5", "1",
       "devices of the axes context and data that share the experts of a layer"}};
  return keys;
}

/// Keys of `kind: synchronous` whose work a mesh does not have.
constexpr const char* kNotOfMesh[] = {"cycle",
                                      "negotiation",
                                      "host_lead",
                                      "host_work",
                                      "host_synchronization",
                                      "host_swap",
                                      "bucket_copies",
                                      "synchronized_batch_norm"};

Mesh read_axes(const YamlMap& map, int workers) {
  Mesh mesh;
  const auto given = map.maybe("mesh");
  if (!given) return {.data = workers};
  const YamlMap axes = read_map(*given, axis_keys());
  const auto size = [&](const char* axis) {
    const auto value = axes.maybe(axis);
    return value ? static_cast<int>(value->integer(1, kMostDevices)) : 1;
  };
  mesh.pipeline = size("pipeline");
  mesh.context = size("context");
  mesh.tensor = size("tensor");
  mesh.expert = size("expert");
  mesh.data = size("data");
  if (!axes.has("data") && mesh.devices() <= workers) mesh.data = static_cast<int>(workers / mesh.replica());
  if (mesh.devices() != workers)
    given->refuse(
        fmt::format("pipeline {} x data {} x context {} x tensor {} are {:.0f} devices, not the {} workers",
                    mesh.pipeline, mesh.data, mesh.context, mesh.tensor, mesh.devices(), workers));
  if (mesh.copies() % mesh.expert != 0)
    axes.at("expert").refuse(fmt::format(
        "{} devices of data x context cannot form groups of {}; give a divisor", mesh.copies(), mesh.expert));
  return mesh;
}

/// Reads `order`: all four axes, each once.
void read_axis_order(const YamlMap& map, MeshOptions& options) {
  const auto order = map.maybe("order");
  if (!order) return;
  for (const YamlValue& name : order->list()) {
    const auto axis = static_cast<Axis>(name.one_of({"tensor", "context", "data", "pipeline"}));
    if (std::ranges::count(options.axes, axis) > 0) name.refuse("an axis occurs twice");
    options.axes.push_back(axis);
  }
  if (options.axes.size() != 4) order->expected("the four axes tensor, context, data and pipeline");
}

/// Copies of the same layers that lie in one node, next to each other.
int copies_in_node(const Setting& setting, const MeshOptions& options) {
  const Mesh& mesh = options.mesh;
  int stride = 1;  // of devices between two copies
  if (options.axes.empty()) stride = mesh.tensor;
  for (const Axis axis : options.axes) {
    if (axis == Axis::data || (axis == Axis::context && mesh.context > 1)) break;
    if (axis == Axis::tensor) stride *= mesh.tensor;
    if (axis == Axis::pipeline) stride *= mesh.pipeline;
  }
  return std::max(1, even_ranks_per_node(setting.platform, setting.devices) / stride);
}

/// `all`, `node`, or a number of devices that divides those of data x context.
void read_shard_within(const YamlMap& map, const Setting& setting, MeshOptions& options) {
  const int copies = options.mesh.copies();
  options.shard_ways = copies;
  const auto within = map.maybe("shard_within");
  if (!within) return;
  const std::string& text = within->node().text;
  if (text == "all") return;
  const int node = copies_in_node(setting, options);
  options.shard_ways =
      text == "node" ? std::min(node, copies) : static_cast<int>(within->integer(1, kMostDevices));
  if (copies % options.shard_ways != 0)
    within->refuse(fmt::format("{} devices of data x context cannot form groups of {}; give a divisor",
                               copies, options.shard_ways));
  if (options.shard_ways == 1 && copies > 1)
    within->refuse("one device has nobody to partition with; give at least 2, or shard: none");
  if (options.mesh.expert > 1 && options.shard_ways < copies)
    within->refuse("not valid with mesh.expert, whose devices partition in groups of their own");
  if (!options.shards_parameters()) within->refuse("only valid with shard: parameters");
}

void read_shard(const YamlMap& map, const Setting& setting, MeshOptions& options) {
  const auto shard = map.maybe("shard");
  if (shard)
    options.shard =
        static_cast<MemoryOptions::Zero>(shard->one_of({"none", "optimizer", "gradients", "parameters"}));
  if (shard && options.shard >= MemoryOptions::Zero::gradients && !options.group.overlap)
    map.at("overlap").refuse(
        fmt::format("false is not valid with shard: {}, which scatters gradients during every backward pass",
                    shard->text()));
  read_shard_within(map, setting, options);
  if (const auto reshard = map.maybe("reshard_after_forward")) {
    options.reshard = reshard->boolean();
    if (!options.shards_parameters()) reshard->refuse("only valid with shard: parameters");
  }
  options.blocks = !map.has("bucket");
  options.half_parameters = true;
}

/// Reads `offload` and the rates of the host, by default those of the platform.
void read_offload(const YamlMap& map, const Setting& setting, MeshOptions& options) {
  const auto offload = map.maybe("offload");
  if (!offload || offload->one_of({"none", "optimizer"}) == 0) {
    for (const char* key : {"host_memory", "host_link"})
      if (map.has(key)) map.at(key).refuse("only valid with offload: optimizer");
    return;
  }
  const NodeShape& node = setting.platform.node;
  const int devices = std::max(1, even_ranks_per_node(setting.platform, setting.devices));
  const auto rate = [&](const char* key, BytesPerSecond otherwise) {
    if (const auto given = map.maybe(key)) return given->bytes_per_second();
    if (!(otherwise.value > 0)) map.at(key, "a bandwidth, as the platform names none");
    return otherwise;
  };
  options.host_memory = rate("host_memory", node.sockets * node.memory.bandwidth / devices);
  options.host_link = rate("host_link", node.device.bandwidth);
}

/// Reads what the axes tensor, context and expert need besides their sizes.
void read_division(const YamlMap& map, MeshOptions& options) {
  if (const auto divides = map.maybe("sequence_parallel"))
    options.sequence_parallel = divides->boolean() && options.mesh.tensor > 1;
  if (const auto how = map.maybe("context_exchange"))
    options.context_exchange =
        static_cast<ContextExchange>(how->one_of({"ring", "all_gather", "all_to_all", "pass_kv"}));
  options.experts.ways = options.mesh.expert;
  if (options.sequence_parallel) options.experts.token_ways = options.mesh.tensor;
  if (const auto factor = map.maybe("capacity_factor"))
    options.experts.capacity_factor = factor->number(1, 100);
  if (const auto most = map.maybe("imbalance")) {
    if (map.has("capacity_factor")) most->refuse("not valid with capacity_factor, which bounds it");
    options.experts.capacity_factor = most->number(1, 1000);
  }
}

}  // namespace

const Keys& mesh_keys() {
  static const Keys keys = joined_keys(
      {{{"mesh", "mapping", "", "all workers along data", "sizes of the axes along which the workers lie",
         axis_keys},
        {"order", "list of names", "tensor, context, data, pipeline", "[tensor, context, data, pipeline]",
         "axes of `mesh` as the devices lie, neighbours first"},
        {"shard", "name", "none, optimizer, gradients, parameters", "none",
         "what replicas partition among themselves: ZeRO 1, 2, 3; parameters as FSDP does"},
        {"shard_within", "integer or name", ">= 1, node, all", "all",
         "devices that partition parameters among themselves; node: hybrid sharding"},
        {"reshard_after_forward", "boolean", "", "true",
         "shard: parameters: whether they are gathered again for the backward pass; false: once a step"},
        {"fp32_gradients", "boolean", "", "true",
         "precision: mixed: whether gradients are summed and kept in fp32"},
        {"sequence_parallel", "boolean", "", "false",
         "mesh.tensor: whether its devices divide the tokens of the layers between shared ones"},
        {"context_exchange", "name", "ring, all_gather, all_to_all, pass_kv", "ring",
         "mesh.context: how keys and values, or heads, reach the other devices"},
        {"capacity_factor", "number", "1 to 100", "1",
         "mesh.expert: tokens that an expert accepts, divided by its even share of all tokens"},
        {"offload", "name", "none, optimizer", "none",
         "optimizer: master weights and the optimizer's state lie on the host, which updates them "
         "(ZeRO-Offload)"},
        {"host_memory", "bandwidth", "> 0", "that of a node's sockets, divided among its devices",
         "offload: memory bandwidth of the host for a device's update"},
        {"host_link", "bandwidth", "> 0", "that of the platform's device link",
         "offload: a device's link to its host"},
        {"imbalance", "number", "1 to 1000", "1",
         "mesh.expert: tokens of the busiest device's experts, for which all wait, over an even share; "
         "without "
         "capacity_factor"}},
       stage_keys(),
       keys_named(group_keys(), {"halo_overlap", "exchange_overhead"}),
       {part_trace_key()}});
  return keys;
}

MeshOptions read_mesh_options(const YamlMap& map, const Setting& setting) {
  for (const char* key : kNotOfMesh)
    if (map.has(key)) map.at(key).refuse("not valid with a mesh of devices (mesh, shard)");
  MeshOptions options;
  options.group = read_mesh_group_options(map);
  options.mesh = read_axes(map, setting.workers());
  read_order(map, "accumulation", options);
  read_axis_order(map, options);
  read_shard(map, setting, options);
  read_division(map, options);
  read_offload(map, setting, options);
  const auto wide = map.maybe("fp32_gradients");
  const bool fp32 = !wide || wide->boolean();
  options.gradient = fp32 ? Bytes{4} : options.group.training.element();
  return options;
}

namespace {

/// Runs of as many blocks each. The first also has the layers before the blocks, the last those after them.
Stages equal_blocks(const YamlValue& split, const Model& model, int runs) {
  const std::size_t blocks = model.blocks.size(), count = static_cast<std::size_t>(runs);
  if (count > 1 && (blocks == 0 || blocks % count != 0))
    split.refuse(
        fmt::format("{} blocks cannot be divided equally among {} stages; give split: time or "
                    "split_points",
                    blocks, runs));
  Stages starts{0};
  for (std::size_t run = 1; run < count; ++run) starts.push_back(model.blocks[run * (blocks / count)].first);
  starts.push_back(static_cast<int>(model.layers.size()));
  return starts;
}

}  // namespace

Stages first_layers_of_runs(const YamlMap& map, const YamlValue& stages, const Setting& setting,
                            const Trace& times, const MeshOptions& options) {
  const int runs = options.mesh.pipeline * options.chunks;
  const auto named = map.maybe("split_points");
  const auto split = map.maybe("split");
  const bool by_blocks = split && split->one_of({"time", "blocks"}) == 1;
  if (!named && by_blocks) return equal_blocks(*split, setting.model, runs);
  if (!named) {
    std::vector<double> seconds;
    for (const LayerTrace& layer : times.layers) {
      seconds.push_back(median(layer.forward.seconds).value + median(layer.backward_data.seconds).value +
                        median(layer.backward_weights.seconds).value);
    }
    if (seconds.size() < static_cast<std::size_t>(runs))
      stages.refuse(fmt::format("{} layers cannot form {} stages", seconds.size(), runs));
    const Stages balanced = balanced_stages(seconds, runs);
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
    starts.push_back(static_cast<int>(found - layers.begin()));
  }
  if (static_cast<int>(starts.size()) != runs)
    named->expected(fmt::format("the first layers of stages 2 to {}", runs));
  starts.push_back(static_cast<int>(setting.model.layers.size()));
  return starts;
}

}  // namespace stepcast
