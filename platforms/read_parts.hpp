#pragma once

#include <string_view>

#include "core/yaml.hpp"
#include "platforms/platform.hpp"

namespace stepcast {

/// The value of `key`, written plainly or as `{value: ..., source: ...}`.
YamlValue sourced(const YamlMap& map, std::string_view key, std::string_view expected);

/// An integer in a mapping, at `key`; `otherwise` when the key is missing.
int count_at(const YamlMap& map, std::string_view key, int low, int high);
int count_or(const YamlMap& map, std::string_view key, int low, int high, int otherwise);

/// `bandwidth` and `latency` of a mapping.
Link link_of(const YamlMap& map);
/// The link described by the mapping at `key`: `{bandwidth: 12 GB/s, latency: 1 us, source: "..."}`.
Link link_at(const YamlMap& map, std::string_view key);

constexpr int kMaxDevicesPerNode = 256;

NodeShape read_node(const YamlValue& value, int& devices);
NetworkShape read_network(const YamlValue& value, const Platform& platform);

/// Ports (NICs) that a fabric has room for; INT_MAX for one that grows as needed.
int fabric_capacity(const FabricShape& fabric);

}  // namespace stepcast
