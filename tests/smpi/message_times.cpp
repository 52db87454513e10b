// What stepcast's simulation of every message says about the exchanges of exchanges.cpp: the seconds, and
// then the host of each rank as the exported platform names it. Message costs are left out, as in the
// exported file.
//
// Usage: message_times PLATFORM.yaml NODES EXCHANGE RANKS STRIDE BYTES LATENCIES
//
// Rank r is on device r x STRIDE modulo their number. LATENCIES: a factor on all latencies.
#include <fmt/format.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "core/yaml.hpp"
#include "tests/sim/simulated_alone.hpp"

using namespace stepcast;

namespace {

Schedule halo_exchange(int ranks) {
  std::vector<Edge> edges;
  for (int rank = 0; rank + 1 < ranks; ++rank) {
    edges.push_back({rank, rank + 1});
    edges.push_back({rank + 1, rank});
  }
  return {ranks, 1, {{.edges = std::make_shared<const std::vector<Edge>>(std::move(edges))}}};
}

Schedule schedule_of(const std::string& name, int ranks) {
  if (name == "ring") return ring_all_reduce({ranks});
  return name == "halo" ? halo_exchange(ranks) : recursive_doubling_all_reduce({ranks});
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 8) return 2;
  YamlNode file = read_yaml(argv[1]);
  std::erase_if(file.entries,
                [](const auto& entry) { return entry.first.text == "software"; });  // needs a device
  Platform platform = read_platform(YamlValue(file, ""), {});
  platform.nodes = std::stoi(argv[2]);
  platform.message_costs = platform.local_message_costs = {{{INFINITY}, {0}, 1}};
  const LinkBandwidths bandwidths(platform);
  const int ranks = std::stoi(argv[4]), stride = std::stoi(argv[5]);
  Placement placement{&platform, &bandwidths.topology(), {}, std::stod(argv[7])};
  for (int rank = 0; rank < ranks; ++rank) placement.endpoints.push_back(rank * stride % platform.devices());
  NetworkPatterns patterns(bandwidths);
  const PatternId exchange =
      patterns.add(std::make_shared<const Schedule>(schedule_of(argv[3], ranks)), placement);
  fmt::print("{}\n", simulated_alone(patterns, LinkSharing::max_min, exchange, {std::stod(argv[6])}));
  for (const int endpoint : placement.endpoints)
    fmt::print("{}\n", bandwidths.topology().endpoint_name(endpoint));
}
