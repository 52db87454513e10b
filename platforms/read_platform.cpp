#include <fmt/format.h>

#include <algorithm>
#include <climits>
#include <limits>

#include "platforms/platform.hpp"
#include "platforms/platform_readers.hpp"

namespace stepcast {
namespace {

// The greatest number of ports (NICs) of each kind of fabric; INT_MAX for a fabric that grows as needed.
int most_ports(const FatTreeShape&) {
  return INT_MAX;
}
int most_ports(const DragonflyShape& d) {
  return d.ports_per_router * d.routers_per_chassis * d.chassis_per_group * d.groups;
}
int most_ports(const TorusShape& t) {
  return t.ports_per_router * t.size[0] * t.size[1] * t.size[2];
}
int most_ports(const SitesShape&) {
  return INT_MAX;
}

int fabric_capacity(const FabricShape& fabric) {
  return std::visit([](const auto& shape) { return most_ports(shape); }, fabric);
}

constexpr int kMaxDevices = 1 << 20;  // keeps every link id an int

const Fields<Storage>& storage_fields() {
  using Kind = Storage::Kind;
  static const Fields<Storage> fields =
      Fields<Storage>{
          field("kind", &Storage::kind, choice<Kind>({{"shared", Kind::shared}, {"local", Kind::local}}),
                required("shared or local"),
                "`shared`: one file system; `local`: a disk in each node, on its first socket"),
          field("bandwidth", &Storage::bandwidth, bandwidth(), required("a rate such as \"12 GB/s\""),
                "bandwidth of all servers together in each direction, or of one local disk"),
          field("latency", &Storage::latency, duration(), required("a time such as \"1 us\""),
                "latency of one request"),
          source_field<Storage>(),
          only_with("shared",
                    {field("into_cluster", &Storage::into_cluster, bandwidth(), otherwise("none"),
                           "bandwidth of a narrower path between the servers and the cluster"),
                     field("per_node", &Storage::per_node, bandwidth(), required("a rate such as \"1 GB/s\""),
                           "bandwidth with which one node can read")})}
          .sourced(Key::Source::may);
  return fields;
}

Storage read_storage(const YamlValue& value) {
  Storage storage;
  read_mapping_of_kind(value, storage_fields(), storage);
  if (storage.kind == Storage::Kind::local) storage.per_node = storage.bandwidth;
  return storage;
}

constexpr double kNoLimit = std::numeric_limits<double>::infinity();

/// A row of a new message cost has no limit.
struct MessageRow {
  MessageCost cost{{kNoLimit}, {}, 1};
};

const Fields<MessageRow>& message_row_fields() {
  static const Fields<MessageCost> of_cost{
      field("up_to", &MessageCost::up_to, bytes(), otherwise("no limit (last row)"),
            "largest message of this row"),
      field("overhead", &MessageCost::overhead, duration(), required("a time such as \"1 us\""),
            "fixed time of a message"),
      field("bandwidth_factor", &MessageCost::bandwidth_factor, number(1e-6, 1),
            required("a number such as 0.9"), "share of the route's bandwidth that a message reaches"),
      source_field<MessageCost>()};
  static const Fields<MessageRow> fields =
      Fields<MessageRow>{part(&MessageRow::cost, of_cost)}.sourced(Key::Source::may);
  return fields;
}

std::vector<MessageCost> read_costs(const YamlValue& list) {
  std::vector<MessageCost> costs;
  Bytes last{-1};
  for (const YamlValue& item : list.list()) {
    if (last.value == kNoLimit) item.refuse("expected no row after the row without up_to");
    MessageRow row;
    const YamlMap map = read_mapping(item, message_row_fields(), row);
    if (row.cost.up_to <= last) map.at("up_to").refuse("expected a value above that of the row before");
    last = row.cost.up_to;
    costs.push_back(row.cost);
  }
  if (last.value != kNoLimit) list.refuse("expected a last row without up_to");
  return costs;
}

Form<std::vector<MessageCost>> costs() {
  return {KeyType::mappings, read_costs, [](const auto&) { return "none"; }, keys_inside<message_row_fields>};
}

const Fields<Platform>& messages_fields() {
  const Default rows = required("a list of {up_to, overhead, bandwidth_factor}");
  static const Fields<Platform> fields{
      field("between_nodes", &Platform::message_costs, costs(), rows,
            "cost of messages between nodes, in rows of growing size"),
      field("inside_node", &Platform::local_message_costs, costs(), rows,
            "cost of messages inside a node, in rows of growing size"),
      field("programs_inside_node", &Platform::local_program_costs, costs(), otherwise("`inside_node`"),
            "cost of messages inside a node to and from servers and between pipeline stages")};
  return fields;
}

const Fields<Platform>& platform_fields() {
  static const Fields<Platform> fields =
      Fields<Platform>{
          field("name", &Platform::name, text(), required("the platform's name"), "name of the platform"),
          field("source", &Platform::source, text(), required("where the description comes from"),
                "what the description is based on"),
          field(
              "device", &Platform::device_name, text({KeyType::name, KeyType::path}),
              required("a file of models/devices"),
              "device of a worker: a name in `models/devices/`, or a file that ends in `.yaml`, relative to "
              "this file"),
          field("nodes", &Platform::nodes, integer(1), required("an integer"),
                "nodes in use, at most `max_nodes`"),
          field(
              "max_nodes", &Platform::max_nodes, integer(1),
              required("the number of nodes of the real machine"),
              "nodes of the real machine; at most as many as fit on the network, with at most 2^20 devices"),
          field("price_per_device_hour", &Platform::price_per_device_hour, number(0), otherwise("none"),
                "price in US dollars; adds the column `cost_usd`"),
          field<Platform>({"node", KeyType::mapping, "required", "the inside of a node", node_keys}),
          field<Platform>(
              {"network", KeyType::mapping, "required", "the network between nodes", network_keys}),
          field<Platform>({"messages", KeyType::mapping, "required",
                           "cost that the software adds to each message", keys_inside<messages_fields>}),
          field<Platform>({"storage", KeyType::mapping, "none", "file system or local disks",
                           keys_inside<storage_fields>}),
          field<Platform>({"software", KeyType::mapping, "none", "the communication library, NCCL or RCCL",
                           software_keys})}
          .sourced(Key::Source::may);
  return fields;
}

/// The nodes of the machine fit on its network, and those in use are among them.
void check_nodes(const YamlMap& map, const Platform& platform) {
  const int capacity = fabric_capacity(platform.network.fabric) / platform.network.ports_per_node();
  const int most = std::min(capacity, kMaxDevices / platform.devices_per_node);
  if (const YamlValue max_nodes = plain_value(map, "max_nodes"); max_nodes.integer(1) > most)
    max_nodes.expected(fmt::format("at most {} nodes, which is the capacity of this fabric", most));
  plain_value(map, "nodes").integer(1, platform.max_nodes);
}

}  // namespace

const Keys& platform_keys() {
  return platform_fields().keys();
}

Platform read_platform(const YamlValue& value, const Device& device) {
  Platform platform;
  const YamlMap map = read_mapping(value, platform_fields(), platform);
  const NodeDescription node = read_node(map.at("node", "a mapping"), device.peer_access);
  platform.node = node.shape;
  platform.devices_per_node = node.devices;
  platform.network = read_network(map.at("network", "a mapping"), platform.node);
  check_nodes(map, platform);
  if (const auto storage = map.maybe("storage")) platform.storage = read_storage(*storage);
  read_mapping(map.at("messages", "a mapping"), messages_fields(), platform);
  if (const auto software = map.maybe("software"))
    platform.software = read_software(*software, device, platform.network.nic_on_pcie_switch);
  platform.device_peak = device.peak;
  platform.device_memory = device.memory;
  return platform;
}

}  // namespace stepcast
