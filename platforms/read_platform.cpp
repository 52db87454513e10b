#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "platforms/read_parts.hpp"

namespace stepcast {
namespace {

constexpr int kMaxDevices = 1 << 20;  // keeps every link id an int

Storage read_storage(const YamlValue& value) {
  Storage storage;
  const std::size_t kind = value.any_map().at("kind", "shared or local").one_of({"shared", "local"});
  std::vector<std::string> keys = {"kind", "bandwidth", "latency", "source"};
  if (kind == 0) keys.insert(keys.end(), {"into_cluster", "per_node"});
  const YamlMap map = value.map(keys);
  const Link link = link_of(map);
  storage.kind = kind == 0 ? Storage::Kind::shared : Storage::Kind::local;
  storage.bandwidth = storage.per_node = link.bandwidth;
  storage.latency = link.latency;
  if (kind == 0) storage.per_node = sourced(map, "per_node", "a rate such as \"1 GB/s\"").bytes_per_second();
  if (map.has("into_cluster")) storage.into_cluster = sourced(map, "into_cluster", "").bytes_per_second();
  return storage;
}

std::vector<MessageCost> read_costs(const YamlMap& messages, std::string_view key) {
  const YamlValue list = messages.at(key, "a list of {up_to, overhead, bandwidth_factor}");
  std::vector<MessageCost> costs;
  Bytes last{-1};
  for (const YamlValue& item : list.list()) {
    if (last.value == std::numeric_limits<double>::infinity()) item.refuse("comes after a row without up_to");
    const YamlMap map = item.map({"up_to", "overhead", "bandwidth_factor", "source"});
    MessageCost row{{std::numeric_limits<double>::infinity()}, {}, 1};
    if (map.has("up_to")) row.up_to = sourced(map, "up_to", "").bytes();
    if (row.up_to <= last) map.at("up_to").refuse("must grow from row to row");
    row.overhead = sourced(map, "overhead", "a time such as \"1 us\"").seconds();
    row.bandwidth_factor = sourced(map, "bandwidth_factor", "a number such as 0.9").number(1e-6, 1);
    last = row.up_to;
    costs.push_back(row);
  }
  if (last.value != std::numeric_limits<double>::infinity()) list.refuse("the last row must have no up_to");
  return costs;
}

int read_nodes(const YamlMap& map, Platform& platform) {
  const int room = fabric_capacity(platform.network.fabric) / platform.network.ports_per_node();
  const int most = std::min(room, kMaxDevices / platform.devices_per_node);
  const YamlValue max_nodes = sourced(map, "max_nodes", "the number of nodes of the real machine");
  platform.max_nodes = static_cast<int>(max_nodes.integer(1));
  if (max_nodes.integer(1) > most)
    max_nodes.expected(fmt::format("at most {} nodes, the places of this fabric", most));
  return count_at(map, "nodes", 1, platform.max_nodes);
}

}  // namespace

YamlValue sourced(const YamlMap& map, std::string_view key, std::string_view expected) {
  const YamlValue value = map.at(key, expected);
  return value.is(YamlNode::Kind::mapping) ? value.map({"value", "source"}).at("value", expected) : value;
}

int count_at(const YamlMap& map, std::string_view key, int low, int high) {
  return static_cast<int>(sourced(map, key, "an integer").integer(low, high));
}

int count_or(const YamlMap& map, std::string_view key, int low, int high, int otherwise) {
  return map.has(key) ? count_at(map, key, low, high) : otherwise;
}

Link link_of(const YamlMap& map) {
  return {sourced(map, "bandwidth", "a rate such as \"12 GB/s\"").bytes_per_second(),
          sourced(map, "latency", "a time such as \"1 us\"").seconds()};
}

Link link_at(const YamlMap& map, std::string_view key) {
  const YamlValue value = map.at(key, "{bandwidth: ..., latency: ...}");
  return link_of(value.map({"bandwidth", "latency", "source"}));
}

Platform read_platform(const YamlValue& value) {
  const YamlMap map = value.map({"name", "source", "device", "nodes", "max_nodes", "price_per_device_hour",
                                 "node", "network", "messages", "storage"});
  Platform platform;
  platform.name = map.at("name", "the platform's name").text();
  platform.source = map.at("source", "where the description comes from").text();
  platform.device_name = map.at("device", "a file of models/devices").text();
  platform.node = read_node(map.at("node", "a mapping"), platform.devices_per_node);
  platform.network = read_network(map.at("network", "a mapping"), platform);
  platform.nodes = read_nodes(map, platform);
  if (map.has("storage")) platform.storage = read_storage(map.at("storage"));
  const YamlMap messages = map.at("messages", "a mapping").map({"between_nodes", "inside_node"});
  platform.message_costs = read_costs(messages, "between_nodes");
  platform.local_message_costs = read_costs(messages, "inside_node");
  if (map.has("price_per_device_hour"))
    platform.price_per_device_hour = sourced(map, "price_per_device_hour", "").number(0);
  return platform;
}

}  // namespace stepcast
