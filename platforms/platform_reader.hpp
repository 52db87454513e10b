#pragma once

#include <string_view>

#include "core/yaml.hpp"
#include "platforms/platform.hpp"

namespace stepcast {

/// The value of `key`, given plainly or as `{value: ..., source: ...}`.
YamlValue sourced(const YamlMap& map, std::string_view key, std::string_view expected);

/// The integer at `key`.
int count_at(const YamlMap& map, std::string_view key, int low, int high);
/// The integer at `key`; `otherwise` if the key is missing.
int count_or(const YamlMap& map, std::string_view key, int low, int high, int otherwise);

/// The link described by the keys `bandwidth` and `latency` of a mapping.
Link link_of(const YamlMap& map);
/// The link described by the mapping at `key`: `{bandwidth: 12 GB/s, latency: 1 us, source: "..."}`.
Link link_at(const YamlMap& map, std::string_view key);

constexpr int kMaxDevicesPerNode = 256;

/// Reads `node:`. @param devices  receives the number of devices of a node
NodeShape read_node(const YamlValue& value, int& devices);
/// Reads `network:`. @param platform  its node was read before
NetworkShape read_network(const YamlValue& value, const Platform& platform);

/// Greatest number of ports (NICs) of a fabric; INT_MAX for a fabric that grows as needed.
int fabric_capacity(const FabricShape& fabric);

}  // namespace stepcast
