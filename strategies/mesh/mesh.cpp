#include "strategies/mesh/mesh.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "core/fields.hpp"
#include "models/layer_times/trace.hpp"
#include "strategies/data_parallel/synchronous.hpp"

namespace stepcast {
namespace {

constexpr std::int64_t kMostDevices = 100'000;
/// Where a stage keeps nothing but its input, the slowest may take this much more for a smaller one: assumed.
constexpr double kStageSlack = 1.05;

const Fields<MeshOptions>& stage_fields() {
  using Options = MeshOptions;
  using Order = PipelineOrder;
  static const Fields<Options> fields{
      renamed(field<Options>({"split_points", "list of layer names", "", "the fastest division",
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

void read_zero_stage(const YamlValue& value, MeshOptions& options) {
  options.shard = static_cast<MemoryOptions::Zero>(value.integer(0, 2));
  if (options.shard != MemoryOptions::Zero::none) options.scatters = "with zero: " + value.text();
}

const Fields<MeshOptions>& pipeline_fields() {
  using Options = MeshOptions;
  const Form<std::int64_t> count = integer(1, kMostDevices);
  static const Fields<Options> fields{
      part(&Options::mesh,
           field("stages", &Mesh::pipeline, count, required("an integer >= 1"), "stages of layers")),
      part(&Options::group,
           field("micro_batches", &GroupOptions::micro_batches, count, "micro-batches in a step")),
      part(&Options::mesh, field("tensor", &Mesh::tensor, count, "devices that share the layers of a stage")),
      field<Options>({"zero", "integer", "0 to 2", "0", "ZeRO stage over the replicas of a stage"},
                     read_zero_stage)};
  return fields;
}

Keys make_pipeline_keys() {
  Keys keys =
      joined_keys({group_keys(), pipeline_fields().keys(), {part_trace_key()}, stage_fields().keys()});
  *std::ranges::find(keys, "recompute", &Key::name) = recompute_key();
  // The reader accepts this key of other strategies to say which key to use.
  std::ranges::find(keys, "accumulation", &Key::name)->meaning = "not valid: give micro_batches";
  return keys;
}

void check_dual(const YamlMap& map, const char* micro_batches, const MeshOptions& options) {
  const int stages = options.mesh.pipeline, count = options.group.micro_batches;
  if (stages % 2 != 0)
    map.at("schedule").refuse(fmt::format("dual_pipe needs an even number of stages, got {}", stages));
  if (count % 2 != 0 || count < 2 * stages)
    map.at(map.has(micro_batches) ? micro_batches : "schedule")
        .refuse(fmt::format("dual_pipe needs an even number of micro-batches, at least {}, got {}",
                            2 * stages, count));
  if (options.recompute.any()) map.at("recompute").refuse("not valid with schedule: dual_pipe");
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

/// Reads stage_fields() and `recompute`. @param micro_batches  name of the key that gives their number
void read_stages(const YamlMap& map, const char* micro_batches, MeshOptions& options) {
  read_fields(map, stage_fields(), options);
  if (const auto again = map.maybe("recompute")) options.recompute = read_recompute(*again, options.order);
  if (!options.recompute.any()) {
    options.synchronizes_checkpoints = false;
    if (map.has("recompute_last")) map.at("recompute_last").refuse("only valid with recompute");
  }
  check_chunks(map, micro_batches, options);
  if (options.dual()) check_dual(map, micro_batches, options);
  if (options.dual()) options.chunks = 2;
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
  read_fields(map, pipeline_fields(), options);
  read_stages(map, "micro_batches", options);
  if (options.shard == MemoryOptions::Zero::gradients && !options.group.overlap)
    map.at("zero").refuse(
        "2 is only valid with overlap: true, because gradients are scattered during every backward pass");
  return options;
}

namespace {

const Fields<Mesh>& axis_fields() {
  const Form<std::int64_t> size = integer(1, kMostDevices);
  static const Fields<Mesh> fields{
      field("pipeline", &Mesh::pipeline, size, "stages of layers"),
      field("data", &Mesh::data, size, otherwise("the rest of the workers"), "replicas of the network"),
      field("context", &Mesh::context, size, "devices that share the tokens of a sequence"),
      field("tensor", &Mesh::tensor, size, "devices that share the layers of a stage"),
      field("expert", &Mesh::expert, size,
            "devices of the axes context and data that share the experts of a layer")};
  return fields;
}

/// Reads `order`: all four axes, each once.
void read_axis_order(const YamlValue& order, MeshOptions& options) {
  for (const YamlValue& name : order.list()) {
    const auto axis = static_cast<Axis>(name.one_of({"tensor", "context", "data", "pipeline"}));
    if (std::ranges::count(options.axes, axis) > 0) name.refuse("an axis occurs twice");
    options.axes.push_back(axis);
  }
  if (options.axes.size() != 4) order.expected("the four axes tensor, context, data and pipeline");
}

Fields<MeshOptions> expert_fields() {
  const auto own = [](Field<Experts> one) { return part(&MeshOptions::experts, std::move(one)); };
  return {
      own(field("imbalance", &Experts::capacity_factor, number(1, 1000),
                "mesh.expert: tokens of the busiest device's experts, for which all wait, over an even "
                "share; without capacity_factor")),
      own(field("expert_exchange", &Experts::deep_ep, choice<bool>({{"nccl", false}, {"deep_ep", true}}),
                "mesh.expert: all-to-alls of NCCL; or of DeepEP, where a token crosses the network once for "
                "each node, and with kernels.precision: fp8 in one byte to its experts")),
      own(field("expert_nodes", &Experts::nodes, integer(1, kMostDevices), otherwise("no limit"),
                "deep_ep: nodes at most on which the experts of a token lie"))};
}

const Fields<MeshOptions>& mesh_fields() {
  using Options = MeshOptions;
  using Shard = MemoryOptions::Zero;
  static const Fields<Options> fields{
      field("mesh", &Options::mesh, mapping<axis_fields>(), otherwise("all workers along data"),
            "sizes of the axes along which the workers lie"),
      field<Options>(
          {"order", "list of names", "tensor, context, data, pipeline", "[tensor, context, data, pipeline]",
           "axes of `mesh` as the devices lie, neighbours first"},
          read_axis_order),
      field("shard", &Options::shard,
            choice<Shard>({{"none", Shard::none},
                           {"optimizer", Shard::optimizer_state},
                           {"gradients", Shard::gradients},
                           {"parameters", Shard::parameters}}),
            "what replicas partition among themselves: ZeRO 1, 2, 3; parameters as FSDP does"),
      field<Options>({"shard_within", "integer or name", ">= 1, node, all", "all",
                      "devices that partition parameters among themselves; node: hybrid sharding"}),
      field("reshard_after_forward", &Options::reshard, boolean(),
            "shard: parameters: whether they are gathered again for the backward pass; false: once a step"),
      field("fp32_gradients", &Options::fp32_gradients, boolean(),
            "precision: mixed: whether gradients are summed and kept in fp32"),
      field("sequence_parallel", &Options::sequence_parallel, boolean(),
            "mesh.tensor: whether its devices divide the tokens of the layers between shared ones"),
      field("context_exchange", &Options::context_exchange,
            choice<ContextExchange>({{"ring", ContextExchange::ring},
                                     {"all_gather", ContextExchange::all_gather},
                                     {"all_to_all", ContextExchange::all_to_all},
                                     {"pass_kv", ContextExchange::pass_kv}}),
            "mesh.context: how keys and values, or heads, reach the other devices"),
      part(&Options::experts,
           field("capacity_factor", &Experts::capacity_factor, number(1, 100),
                 "mesh.expert: tokens that an expert accepts, divided by its even share of all tokens")),
      field("offload", &Options::offload,
            choice<Offload>({{"none", Offload::none},
                             {"optimizer", Offload::optimizer},
                             {"activations", Offload::activations}}),
            "what lies on the host: optimizer: master weights and the optimizer's state, which the host "
            "updates (ZeRO-Offload); activations: what blocks keep for the backward pass"),
      field("host_memory", &Options::host_memory, bandwidth(),
            otherwise("that of a node's sockets, divided among its devices"),
            "offload: memory bandwidth of the host for a device's update"),
      field("host_link", &Options::host_link, bandwidth(), otherwise("that of the platform's device link"),
            "offload: a device's link to its host"),
      expert_fields().fields()};
  return fields;
}

/// Keys of `kind: synchronous` whose work a mesh does not have.
constexpr const char* kNotOfMesh[] = {
    "cycle",      "negotiation",          "host_lead", "host_work",     "host_turn",
    "input_rate", "host_synchronization", "host_swap", "bucket_copies", "synchronized_batch_norm"};

/// Sets the data axis where it is not given, and checks that the axes make up the workers.
void complete_axes(const YamlMap& map, int workers, Mesh& mesh) {
  if (!map.has("mesh")) {
    mesh.data = workers;
    return;
  }
  const YamlValue given = map.at("mesh");
  const YamlMap axes = given.any_map();
  if (!axes.has("data") && mesh.devices() <= workers) mesh.data = static_cast<int>(workers / mesh.replica());
  if (mesh.devices() != workers)
    given.refuse(
        fmt::format("pipeline {} x data {} x context {} x tensor {} are {:.0f} devices, not the {} workers",
                    mesh.pipeline, mesh.data, mesh.context, mesh.tensor, mesh.devices(), workers));
  if (mesh.copies() % mesh.expert != 0)
    axes.at("expert").refuse(fmt::format(
        "{} devices of data x context cannot form groups of {}; give a divisor", mesh.copies(), mesh.expert));
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
  options.shard_ways = text == "node" ? std::min(node, copies) : within->integer(1, kMostDevices);
  if (copies % options.shard_ways != 0)
    within->refuse(fmt::format("{} devices of data x context cannot form groups of {}; give a divisor",
                               copies, options.shard_ways));
  if (options.shard_ways == 1 && copies > 1)
    within->refuse("one device has nobody to partition with; give at least 2, or shard: none");
  if (options.mesh.expert > 1 && options.shard_ways < copies)
    within->refuse("not valid with mesh.expert, whose devices partition in groups of their own");
  if (!options.shards_parameters()) within->refuse("only valid with shard: parameters");
}

void complete_shards(const YamlMap& map, const Setting& setting, MeshOptions& options) {
  if (options.dual() && options.shards_parameters())
    map.at("shard").refuse("parameters is not valid with schedule: dual_pipe");
  if (options.shard >= MemoryOptions::Zero::gradients && !options.group.overlap)
    map.at("overlap").refuse(
        fmt::format("false is not valid with shard: {}, which scatters gradients during every backward pass",
                    map.at("shard").text()));
  read_shard_within(map, setting, options);
  if (map.has("reshard_after_forward") && !options.shards_parameters())
    map.at("reshard_after_forward").refuse("only valid with shard: parameters");
  options.blocks = !map.has("bucket");
  options.half_parameters = true;
}

/// Sets the rates of the host that are not given to those of the platform.
void complete_host(const YamlMap& map, const Setting& setting, MeshOptions& options) {
  const NodeShape& node = setting.platform.node;
  const int devices = std::max(1, even_ranks_per_node(setting.platform, setting.devices));
  const auto complete = [&](const char* key, BytesPerSecond& rate, BytesPerSecond otherwise) {
    const bool link = &rate == &options.host_link;
    const bool used = options.offload == Offload::optimizer || (link && options.offload != Offload::none);
    if (!used && map.has(key))
      map.at(key).refuse(fmt::format("only valid with offload{}", link ? "" : ": optimizer"));
    if (!used || rate.value > 0) return;
    if (!(otherwise.value > 0)) map.at(key, "a bandwidth, as the platform names none");
    rate = otherwise;
  };
  complete("host_memory", options.host_memory, node.sockets * node.memory.bandwidth / devices);
  complete("host_link", options.host_link, node.device.bandwidth);
}

void complete_experts(const YamlMap& map, const Setting& setting, MeshOptions& options) {
  if (map.has("expert_nodes") && !options.experts.deep_ep)
    map.at("expert_nodes").refuse("only valid with expert_exchange: deep_ep");
  if (copies_in_node(setting, options) >= options.mesh.expert) options.experts.nodes = 0;
  if (options.experts.deep_ep && setting.device.choice().precision == KernelChoice::Precision::fp8)
    options.experts.dispatched = 1 / kHalfBytes;
  options.experts.ways = options.mesh.expert;
  options.experts.pads = map.has("capacity_factor");
  if (options.sequence_parallel) options.experts.token_ways = options.mesh.tensor;
  if (map.has("imbalance") && map.has("capacity_factor"))
    map.at("imbalance").refuse("not valid with capacity_factor, which bounds it");
}

}  // namespace

const Keys& mesh_keys() {
  static const Keys keys = joined_keys({mesh_fields().keys(),
                                        stage_fields().keys(),
                                        keys_named(group_keys(), {"halo_overlap", "exchange_overhead"}),
                                        {part_trace_key()}});
  return keys;
}

MeshOptions read_mesh_options(const YamlMap& map, const Setting& setting) {
  for (const char* key : kNotOfMesh)
    if (map.has(key)) map.at(key).refuse("not valid with a mesh of devices (mesh, shard)");
  MeshOptions options;
  options.group = read_mesh_group_options(map);
  read_fields(map, mesh_fields(), options);
  complete_axes(map, setting.workers(), options.mesh);
  read_stages(map, "accumulation", options);
  complete_shards(map, setting, options);
  options.sequence_parallel = options.sequence_parallel && options.mesh.tensor > 1;
  complete_experts(map, setting, options);
  complete_host(map, setting, options);
  options.gradient = options.fp32_gradients ? Bytes{4} : options.group.training.element();
  return options;
}

namespace {

/// Runs of as many blocks each. The first also has the layers before the blocks, the last those after them.
Stages equal_blocks(const YamlValue& split, const Model& model, int runs) {
  const std::size_t blocks = model.blocks.size(), count = runs;
  if (count > 1 && (blocks == 0 || blocks % count != 0))
    split.refuse(
        fmt::format("{} blocks cannot be divided equally among {} stages; give split: time or "
                    "split_points",
                    blocks, runs));
  Stages starts{0};
  for (std::size_t run = 1; run < count; ++run) starts.push_back(model.blocks[run * (blocks / count)].first);
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
