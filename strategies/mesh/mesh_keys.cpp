#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "core/fields.hpp"
#include "strategies/mesh/mesh.hpp"
#include "strategies/mesh/spatial_axis.hpp"
#include "strategies/mesh/stages.hpp"

namespace stepcast {
namespace {

const Fields<Mesh>& axis_fields() {
  const Form<std::int64_t> size = integer(1, kMostDevices);
  static const Fields<Mesh> fields{
      field("pipeline", &Mesh::pipeline, size, "stages of layers"),
      field("data", &Mesh::data, size, otherwise("the rest of the workers"), "replicas of the network"),
      field("context", &Mesh::context, size, "devices that share the tokens of a sequence"),
      field("tensor", &Mesh::tensor, size, "devices that share the layers of a stage"),
      field("expert", &Mesh::expert, size,
            "devices of the axes context and data that share the experts of a layer"),
      field("filter", &Mesh::filter, size, "devices that share the filters of each layer"),
      field<Mesh>({"spatial", Allowed({KeyType::integer, KeyType::list}, {}, {}, "a divisor of the workers"),
                   "1",
                   "devices that share the positions of a sample: 4 strips, or [2, 2] along each "
                   "dimension"})};
  return fields;
}

/// Reads `order`: all four axes, each once.
void read_axis_order(const YamlValue& order, MeshOptions& options) {
  for (const YamlValue& name : order.list()) {
    const auto axis = static_cast<MeshAxis>(name.one_of({"tensor", "context", "data", "pipeline"}));
    if (std::ranges::count(options.axes, axis) > 0) name.refuse("an axis occurs twice");
    options.axes.push_back(axis);
  }
  if (options.axes.size() != 4) order.expected("the four axes tensor, context, data and pipeline");
}

Field<MeshOptions> of_experts(Field<Experts> one) {
  return part(&MeshOptions::experts, std::move(one));
}

const Fields<MeshOptions>& expert_fields() {
  static const Fields<MeshOptions> fields{
      of_experts(field("experts", &Experts::count, integer(1, 1'000'000),
                       otherwise("required, or the network's"), "experts per layer; a multiple of ways")),
      of_experts(field("top", &Experts::top, integer(1, 1000), "experts that each token visits")),
      of_experts(field("capacity_factor", &Experts::capacity_factor, number(1, 100),
                       "tokens that an expert accepts, divided by its even share of all tokens")),
      of_experts(field("every", &Experts::every, integer(1, 10'000),
                       "one of this many consecutive blocks has experts"))};
  return fields;
}

Fields<MeshOptions> mesh_expert_fields() {
  return {of_experts(
              field("imbalance", &Experts::capacity_factor, number(1, 1000),
                    "mesh.expert: tokens of the busiest device's experts, for which all wait, over an even "
                    "share; without capacity_factor")),
          of_experts(field(
              "expert_exchange", &Experts::deep_ep, choice<bool>({{"nccl", false}, {"deep_ep", true}}),
              "mesh.expert: all-to-alls of NCCL; or of DeepEP, where a token crosses the network once for "
              "each node, and with kernels.precision: fp8 in one byte to its experts")),
          of_experts(field("expert_nodes", &Experts::nodes, integer(1, kMostDevices), otherwise("no limit"),
                           "deep_ep: nodes at most on which the experts of a token lie"))};
}

const Fields<MeshOptions>& mesh_fields() {
  using Options = MeshOptions;
  using Shard = MemoryOptions::Zero;
  static const Fields<Options> fields{
      field("mesh", &Options::mesh, mapping<axis_fields>(), otherwise("all workers along data"),
            "sizes of the axes along which the workers lie"),
      field<Options>(
          {"order", Allowed(KeyType::names, {}, {"tensor", "context", "data", "pipeline"}),
           "[tensor, context, data, pipeline]", "axes of `mesh` as the devices lie, neighbours first"},
          read_axis_order),
      field("shard", &Options::shard,
            choice<Shard>({{"none", Shard::none},
                           {"optimizer", Shard::optimizer_state},
                           {"gradients", Shard::gradients},
                           {"parameters", Shard::parameters}}),
            "what replicas partition among themselves: ZeRO 1, 2, 3; parameters as FSDP does"),
      field<Options>({"shard_within", Allowed({KeyType::integer, KeyType::name}, {1}, {"node", "all"}), "all",
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
      expert_fields().fields(),
      mesh_expert_fields().fields()};
  return fields;
}

/// Refuses axes that cannot be together.
void check_axes(const YamlMap& axes, const MeshOptions& options) {
  const Mesh& mesh = options.mesh;
  const auto refuse_beside = [&](const char* axis, bool other, const char* name, const char* why) {
    if (other) axes.at(axis).refuse(fmt::format("not valid with {}: {}", name, why));
  };
  if (mesh.filter > 1) {
    refuse_beside("filter", mesh.tensor > 1, "mesh.tensor", "a layer is divided by filters or as a block");
    refuse_beside("filter", mesh.pipeline > 1, "mesh.pipeline",
                  "a later stage would read filters that it has not gathered");
    refuse_beside("filter", options.sequence_parallel, "sequence_parallel", "the layers have no tokens");
  }
  if (!axes.has("spatial")) return;
  refuse_beside("spatial", mesh.context > 1, "mesh.context", "a sample has positions or tokens");
  refuse_beside("spatial", mesh.tensor > 1, "mesh.tensor", "halos are rows of whole layers");
  refuse_beside("spatial", mesh.filter > 1, "mesh.filter", "halos are rows of whole layers");
  refuse_beside("spatial", mesh.expert > 1, "mesh.expert", "experts divide tokens");
}

/// Filters divide the layers in place of blocks, and positions a sample in place of tokens.
void share_axes(const YamlMap& map, const Model& model, MeshOptions& options) {
  std::optional<YamlValue> spatial;
  if (map.has("mesh")) {
    const YamlMap axes = map.at("mesh").any_map();
    check_axes(axes, options);
    spatial = axes.maybe("spatial");
  }
  read_positions(map, spatial, model, options);
  if (options.mesh.filter == 1) return;
  options.division = LayerDivision::filters;
  options.mesh.tensor = options.mesh.filter;
}

/// Keys of `kind: synchronous` whose work a mesh does not have.
constexpr const char* kNotOfMesh[] = {
    "cycle",      "negotiation",          "host_lead", "host_work",     "host_turn",
    "input_rate", "host_synchronization", "host_swap", "bucket_copies", "synchronized_batch_norm"};

/// Sets the data axis where it is not given, and checks that the axes make up the workers.
void complete_axes(const YamlMap& map, int workers, MeshOptions& options) {
  Mesh& mesh = options.mesh;
  if (!map.has("mesh")) {
    mesh.data = workers;
    return;
  }
  const YamlValue given = map.at("mesh");
  const YamlMap axes = given.any_map();
  if (!axes.has("data") && mesh.devices() <= workers) mesh.data = static_cast<int>(workers / mesh.replica());
  if (mesh.devices() != workers)
    given.refuse(fmt::format("pipeline {} x data {} x {} {} x {} {} are {:.0f} devices, not the {} workers",
                             mesh.pipeline, mesh.data, options.divides_positions() ? "spatial" : "context",
                             mesh.context, mesh.filter > 1 ? "filter" : "tensor", mesh.tensor, mesh.devices(),
                             workers));
  if (mesh.copies() % mesh.expert != 0)
    axes.at("expert").refuse(fmt::format(
        "{} devices of data x context cannot form groups of {}; give a divisor", mesh.copies(), mesh.expert));
}

/// Copies of the same layers that lie in one node, next to each other.
int copies_in_node(const Setting& setting, const MeshOptions& options) {
  const Mesh& mesh = options.mesh;
  int stride = 1;  // of devices between two copies
  if (options.axes.empty()) stride = mesh.tensor;
  for (const MeshAxis axis : options.axes) {
    if (axis == MeshAxis::data || (axis == MeshAxis::context && mesh.context > 1)) break;
    if (axis == MeshAxis::tensor) stride *= mesh.tensor;
    if (axis == MeshAxis::pipeline) stride *= mesh.pipeline;
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
  if (options.mesh.expert > 1 || map.has("experts")) read_experts(map, setting.model, options);
  if (options.sequence_parallel) options.experts.token_ways = options.mesh.tensor;
  if (map.has("imbalance") && map.has("capacity_factor"))
    map.at("imbalance").refuse("not valid with capacity_factor, which bounds it");
}

}  // namespace

const Keys& mesh_keys() {
  static const Keys keys = joined_keys({mesh_fields().keys(),
                                        position_keys(),
                                        stage_keys(),
                                        keys_named(group_keys(), {"halo_overlap", "exchange_overhead"}),
                                        keys_named(recompute_keys(), {"early_stop"}),
                                        {part_trace_key()}});
  return keys;
}

Keys keys_over_mesh() {
  Keys keys = synchronous_over_mesh().keys;
  std::erase_if(
      keys, [](const Key& key) { return std::ranges::find(kNotOfMesh, key.name) != std::end(kNotOfMesh); });
  return keys;
}

MeshOptions read_mesh_options(const YamlMap& map, const Setting& setting) {
  for (const char* key : kNotOfMesh)
    if (map.has(key)) map.at(key).refuse("not valid with a mesh of devices (mesh, shard)");
  MeshOptions options;
  options.group = read_group_options(map);
  read_fields(map, mesh_fields(), options);
  share_axes(map, setting.model, options);
  complete_axes(map, setting.workers(), options);
  read_stages(map, "accumulation", options);
  complete_shards(map, setting, options);
  options.sequence_parallel = options.sequence_parallel && options.mesh.tensor > 1;
  complete_experts(map, setting, options);
  complete_host(map, setting, options);
  options.gradient = options.fp32_gradients ? Bytes{4} : options.group.training.element();
  return options;
}

namespace {

/// The experts of a network that has layers of them, as many in each.
void take_own_experts(const YamlMap& map, const Model& model, const std::vector<std::size_t>& layers,
                      Experts& experts) {
  for (const char* key : {"experts", "top", "every"}) {
    if (map.has(key)) map.at(key).refuse("not valid: the network has experts of its own");
  }
  experts.count = model.layers[layers.front()].experts;
  experts.top = model.layers[layers.front()].top;
  for (const std::size_t layer : layers) {
    if (model.layers[layer].experts != experts.count)
      map.value().refuse("the layers of the network have different numbers of experts");
  }
}

}  // namespace

const Keys& expert_keys() {
  return expert_fields().keys();
}

void read_experts(const YamlMap& map, const Model& model, MeshOptions& options) {
  Experts& experts = options.experts;
  read_fields(map, expert_fields(), options);
  options.has_experts = true;
  experts.ways = options.mesh.expert;
  experts.pads = map.has("capacity_factor");
  const std::vector<std::size_t> own = expert_layers(model);
  if (!own.empty()) return take_own_experts(map, model, own, experts);
  map.at("experts", "experts a layer");
}

}  // namespace stepcast
