#pragma once

#include <fmt/format.h>

#include <numeric>

#include "core/random.hpp"
#include "tests/sim/small_cluster.hpp"

namespace stepcast {

constexpr int kRandomNodes = 32;

/// A random data-parallel step on a random cluster.
struct RandomCase {
  enum Fabric { one_switch, fat_tree, racks, torus, dragonfly };

  Fabric fabric;
  int devices, nics, taper, nodes, streams;
  int slow_nics;      ///< nodes whose NICs other traffic slows down
  double slow_share;  ///< what is left of them
  int placement;      ///< nodes in order; every third one; random order
  Algorithm algorithm;
  LocalPart local;
  NetworkPart network;
  double scale;     ///< of the gradients: 4, 8 and 12 MB
  double backward;  ///< of every layer [s]: staggers the buckets
  bool overlap;
  std::uint32_t number;

  int workers() const { return nodes * devices; }
};

template <class Value>
Value choice(const std::vector<Value>& values, std::uint32_t number, std::uint32_t what) {
  return values[uniform_index({12, Purpose::data, number, what, 0}, values.size())];
}

inline RandomCase random_case(std::uint32_t number) {
  using C = RandomCase;
  C c{};
  c.number = number;
  c.fabric = choice<C::Fabric>({C::one_switch, C::fat_tree, C::racks, C::torus, C::dragonfly}, number, 0);
  c.devices = choice<int>({1, 2, 4}, number, 1);
  c.nics = c.devices == 1 ? 1 : choice<int>({1, 2}, number, 2);
  c.taper = choice<int>({1, 2, 4}, number, 3);
  c.nodes = choice<int>({2, 3, 4, 6, 8, 12, 16, 24, 32}, number, 4);
  c.streams = choice<int>({1, 1, 2, 3}, number, 5);
  c.slow_nics = choice<int>({0, 0, 1, 3}, number, 6);
  c.slow_share = choice<double>({0.3, 0.6, 0.9}, number, 7);
  c.placement = choice<int>({0, 0, 1, 2}, number, 8);
  c.algorithm = choice<Algorithm>(
      {Algorithm::automatic, Algorithm::ring, Algorithm::halving_doubling, Algorithm::recursive_doubling,
       Algorithm::binomial_tree, Algorithm::double_tree, Algorithm::hierarchical},
      number, 9);
  c.local = choice<LocalPart>({LocalPart::reduce_scatter, LocalPart::leader}, number, 10);
  c.network = choice<NetworkPart>(
      {NetworkPart::ring, NetworkPart::halving_doubling, NetworkPart::binomial_tree}, number, 11);
  c.scale = choice<double>({0.01, 0.1, 1, 10}, number, 12);
  c.backward = choice<double>({0, 0.0002, 0.002, 0.02}, number, 13);
  c.overlap = choice<int>({0, 1}, number, 14) == 1;
  return c;
}

inline std::string fabric_text(const RandomCase& c) {
  switch (c.fabric) {
    case RandomCase::one_switch:
      return "kind: switch";
    case RandomCase::fat_tree:
      return fmt::format("kind: fat_tree, levels: [{{down: 8, up: {}, taper: {}, latency: 1 us}}]",
                         8 / c.taper, c.taper);
    case RandomCase::racks:  // one cable out of a rack of four NICs, racks in rows of four
      return fmt::format(
          "kind: fat_tree, levels: [{{down: 4, up: 1, taper: {0}, latency: 0.5 us}}, {{down: 4, up: 1, "
          "taper: "
          "{0}, latency: 2 us}}]",
          c.taper);
    case RandomCase::torus:
      return fmt::format(
          "kind: torus, routers: [4, 4, 2], nodes_per_router: {}, x_cable: {{bandwidth: 12 GB/s, latency: "
          "0.1 "
          "us}}, y_cable: {{bandwidth: 6 GB/s, latency: 0.1 us}}, z_cable: {{bandwidth: 12 GB/s, latency: "
          "0.1 "
          "us}}",
          c.nics);
    case RandomCase::dragonfly:
      return fmt::format(
          "kind: dragonfly, nodes_per_router: {}, routers_per_chassis: 4, chassis_per_group: 2, groups: 4, "
          "cables_per_group_pair: 1, chassis_cable: {{bandwidth: 10 GB/s, latency: 0.1 us}}, group_cable: "
          "{{bandwidth: 15 GB/s, latency: 0.1 us}}, global_cable: {{bandwidth: 14 GB/s, latency: 0.3 us}}, "
          "routing: minimal",
          c.nics);
  }
  return "";
}

inline Platform platform_of(const RandomCase& c) {
  const std::string text = fmt::format(R"(
name: random
source: test
device: none
nodes: {0}
max_nodes: {0}
node:
  kind: switch
  devices: {1}
  device_link: {{bandwidth: 16 GB/s, latency: 1 us}}
  memory: {{bandwidth: 100 GB/s, latency: 0 s}}
  peer_link: {{bandwidth: 100 GB/s, latency: 1 us}}
network: {{nics: {2}, bandwidth: 12 GB/s, latency: 1 us, {3}}}
messages:
  between_nodes: [{{up_to: 64 KiB, overhead: 3 us, bandwidth_factor: 0.8}}, {{overhead: 6 us, bandwidth_factor: 1}}]
  inside_node: [{{overhead: 1 us, bandwidth_factor: 1}}]
)",
                                       kRandomNodes, c.devices, c.nics, fabric_text(c));
  const YamlNode root = parse_yaml(text, "random.yaml");
  return read_platform(YamlValue(root, ""), {});
}

/// Nodes in the order in which they take part.
inline std::vector<int> nodes_of(const RandomCase& c) {
  std::vector<int> nodes(kRandomNodes);
  std::iota(nodes.begin(), nodes.end(), 0);
  for (std::uint32_t i = 0; c.placement == 2 && i + 1 < kRandomNodes; ++i) {
    const auto other = i + uniform_index({12, Purpose::data, c.number, 100, i}, kRandomNodes - i);
    std::swap(nodes[i], nodes[other]);
  }
  for (int i = 0; c.placement == 1 && i < kRandomNodes; ++i) nodes[i] = 3 * i % kRandomNodes;
  nodes.resize(c.nodes);
  return nodes;
}

inline std::vector<int> endpoints_of(const RandomCase& c) {
  std::vector<int> endpoints;
  for (const int node : nodes_of(c)) {
    for (int device = 0; device < c.devices; ++device) endpoints.push_back(node * c.devices + device);
  }
  return endpoints;
}

/// Other traffic on the NICs of some of the nodes that take part.
inline void slow_nics(const RandomCase& c, LinkBandwidths& bandwidths) {
  const Topology topology(platform_of(c));
  const auto nodes = nodes_of(c);
  for (int i = 0; i < std::min(c.slow_nics, c.nodes); ++i) {
    const int first = nodes[i * c.nodes / c.slow_nics] * topology.links_per_node();
    for (int link = first; link < first + topology.links_per_node(); ++link) {
      if (topology.link_kind(link) == "NIC") bandwidths.multiply(link, c.slow_share);
    }
  }
}

}  // namespace stepcast
