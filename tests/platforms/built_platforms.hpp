#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "core/yaml.hpp"
#include "models/loader.hpp"
#include "platforms/platform.hpp"
#include "platforms/topology.hpp"

namespace stepcast {

/// A platform of nodes with one device on a given fabric. NICs have 1 GB/s and 1 us, half of it at each end.
inline Platform platform_of(int nodes, FabricShape fabric) {
  Platform platform;
  platform.nodes = platform.max_nodes = nodes;
  platform.node.device = platform.node.memory = {{10e9}, {0}};
  platform.network.nic = {{1e9}, {0.5e-6}};
  platform.network.fabric = std::move(fabric);
  return platform;
}

inline std::vector<int> route_between(const Topology& topology, int from, int to) {
  std::vector<int> links;
  topology.route(from, to, links);
  return links;
}

/// Checks that a route connects both endpoints link by link and uses no link twice. Returns the fault, or
/// nothing.
inline std::string fault_of_route(const Topology& topology, int from, int to) {
  std::vector<int> links = route_between(topology, from, to);
  int at = topology.endpoint_vertex(from);
  for (const int id : links) {
    if (id < 0 || id >= topology.link_count()) return "no such link";
    const auto [tail, head] = topology.link_ends(id);
    if (tail != at) return topology.link_name(id) + " does not start where the route is";
    at = head;
  }
  if (at != topology.endpoint_vertex(to)) return "does not arrive";
  std::sort(links.begin(), links.end());
  return std::adjacent_find(links.begin(), links.end()) == links.end() ? "" : "uses a link twice";
}

/// Checks the routes between all pairs of about 60 endpoints, spread over the platform. Returns the first
/// fault, or nothing.
inline std::string fault_of_routes(const Platform& platform) {
  const Topology topology(platform);
  const int last =
      platform.storage.kind == Storage::Kind::shared ? platform.endpoints() : platform.endpoints() - 1;
  const int step = std::max(1, last / 60);
  for (int from = 0; from < last; from += step) {
    for (int to = last - 1; to >= 0; to -= step) {
      const std::string fault = fault_of_route(topology, from, to);
      if (!fault.empty()) return std::to_string(from) + " to " + std::to_string(to) + ": " + fault;
    }
  }
  return "";
}

inline Device shipped_device(const std::string& name) {
  return load_device(STEPCAST_SOURCE_DIR "/models", name);
}

inline Platform platform_file(const std::string& name) {
  const YamlNode root = read_yaml(std::string(STEPCAST_SOURCE_DIR) + "/platforms/" + name + ".yaml");
  return read_platform(YamlValue(root, ""), shipped_device(root.find("device")->text));
}

}  // namespace stepcast
