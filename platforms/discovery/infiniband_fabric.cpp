#include <fmt/format.h>
#include <regex.h>

#include <algorithm>
#include <map>
#include <set>
#include <sstream>

#include "core/error.hpp"
#include "core/text.hpp"
#include "platforms/discovery/discovered.hpp"

namespace stepcast {
namespace {

/// A switch or channel adapter. `cables` counts the cables to each peer, whose identifier is such as
/// "S-0002c90200412345".
struct IbNode {
  bool is_switch = false;
  std::string host;     ///< of a CA: the first word of its description; its identifier, if it has no name
  std::string adapter;  ///< of a CA: the rest, such as "mlx5_0"
  std::map<std::string, int> cables;
  int level = -1;  ///< of a switch; 0: a leaf
};

using IbNodes = std::map<std::string, IbNode>;

/// Data rate of a lane [bit/s], which is the signalling rate times 8/10 up to QDR and times 64/66 from FDR
/// on. Source: InfiniBand Trade Association, InfiniBand roadmap.
double lane_rate(const std::string& speed) {
  static const std::map<std::string, double> rates{{"SDR", 2e9},    {"DDR", 4e9},     {"QDR", 8e9},
                                                   {"FDR10", 10e9}, {"FDR", 13.64e9}, {"EDR", 25e9},
                                                   {"HDR", 50e9},   {"NDR", 100e9},   {"XDR", 200e9}};
  const auto found = rates.find(speed);
  return found == rates.end() ? 0 : found->second;
}

/// Bandwidth of a rate such as "4xEDR"; none for words that are no rate.
std::optional<BytesPerSecond> rate_of(const std::string& word) {
  const std::size_t x = word.find('x');
  if (x == std::string::npos || x == 0 || x > 2 || lane_rate(word.substr(x + 1)) == 0) return {};
  const int lanes = std::atoi(word.substr(0, x).c_str());
  if (lanes < 1) return {};
  return BytesPerSecond{lanes * lane_rate(word.substr(x + 1)) / 8};
}

/// A POSIX extended regular expression. <regex> would take longer to compile than the rest of the folder.
class Pattern {
 public:
  explicit Pattern(const char* text) {
    if (regcomp(&compiled_, text, REG_EXTENDED) != 0) throw std::logic_error(text);
  }
  ~Pattern() { regfree(&compiled_); }
  Pattern(const Pattern&) = delete;
  Pattern& operator=(const Pattern&) = delete;

  /// The groups of the first match, in order; none: `line` does not match. A group that took no part is
  /// empty.
  std::vector<std::string> groups(const std::string& line) const {
    std::vector<regmatch_t> found(compiled_.re_nsub + 1);
    if (regexec(&compiled_, line.c_str(), found.size(), found.data(), 0) != 0) return {};
    std::vector<std::string> result;
    for (auto one = found.begin() + 1; one != found.end(); ++one)
      result.push_back(one->rm_so < 0 ? "" : line.substr(one->rm_so, one->rm_eo - one->rm_so));
    return result;
  }

 private:
  regex_t compiled_;
};

/// True for the descriptions that adapters have until a host gives them its name, such as "MT4123 ConnectX6
/// Mellanox Technologies".
bool is_unnamed(const std::string& description) {
  return description.find_first_not_of(' ') == std::string::npos || description.starts_with("MT") ||
         description.starts_with("localhost") ||
         description.find("Mellanox Technologies") != std::string::npos;
}

/// @param words  "Switch", "Ca" or another kind, the identifier, the description
void read_heading(const std::vector<std::string>& words, IbNodes& nodes, std::string& current) {
  // Nodes in switches that compute sums for SHARP are adapters without a host; routers are no part of a tree.
  const bool aggregation = words[2].find("Aggregation Node") != std::string::npos;
  current = aggregation || (words[0] != "Switch" && words[0] != "Ca") ? "" : words[1];
  if (current.empty()) return;
  IbNode& one = nodes[current];
  one.is_switch = words[0] == "Switch";
  if (!one.is_switch && is_unnamed(words[2])) {
    one.host = current;
    return;
  }
  std::istringstream description(words[2]);
  description >> one.host;
  std::getline(description >> std::ws, one.adapter);
}

/// The rates of cables between switches and to hosts count.
/// @param peer  identifier of the node at the other end
/// @param text  what follows it; its last word may be the rate
void read_cable(const std::string& peer, const std::string& text, IbNode& one,
                std::map<std::string, int>& rates) {
  ++one.cables[peer];
  const std::vector<std::string> words = split_words(text);
  const bool aggregation = text.find("Aggregation Node") != std::string::npos;
  if (one.is_switch && !aggregation && !words.empty() && rate_of(words.back())) ++rates[words.back()];
}

IbNodes read_nodes(const std::string& text, const std::string& file, std::map<std::string, int>& rates) {
  static const Pattern heading(
      R"rx(^([A-Z][a-z]+)[[:space:]]+[0-9]+[[:space:]]+"([^"]+)"[[:space:]]*#[[:space:]]*"([^"]*)")rx");
  static const Pattern cable(R"rx(^\[[0-9]+\](\([0-9a-f]*\))?[[:space:]]+"([^"]+)"\[[0-9]+\](.*))rx");
  IbNodes nodes;
  std::string current;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.size() > 1024) continue;
    if (const std::vector<std::string> node = heading.groups(line); !node.empty()) {
      read_heading(node, nodes, current);
    } else if (current.empty()) {
      continue;
    } else if (const std::vector<std::string> words = cable.groups(line); !words.empty()) {
      read_cable(words[1], words[2], nodes[current], rates);
    }
  }
  const bool switches = std::ranges::any_of(nodes, [](const auto& one) { return one.second.is_switch; });
  if (!switches)
    throw InputError(file + ":1: expected the output of ibnetdiscover with lines Switch N \"S-...\"");
  return nodes;
}

const IbNode* peer(const IbNodes& nodes, const std::string& name) {
  const auto found = nodes.find(name);
  return found == nodes.end() ? nullptr : &found->second;
}

int adapters_of(const IbNodes& nodes, const IbNode& one) {
  int count = 0;
  for (const auto& [name, cables] : one.cables) {
    const IbNode* other = peer(nodes, name);
    if (other && !other->is_switch) count += cables;
  }
  return count;
}

/// True if a switch has adapters, and most of its neighbours do not have several times as many: a spine may
/// have a management node.
bool is_leaf(const IbNodes& nodes, const IbNode& one) {
  const int own = adapters_of(nodes, one);
  int larger = 0, neighbours = 0;
  for (const auto& [name, cables] : one.cables) {
    const IbNode* other = peer(nodes, name);
    if (!other || !other->is_switch) continue;
    ++neighbours;
    if (adapters_of(nodes, *other) > 2 * own) ++larger;
  }
  return own > 0 && 2 * larger <= neighbours;
}

/// Sets the level of each switch: 0 for a leaf, else one more than that of its lowest neighbour.
/// @return the number of levels
int set_levels(IbNodes& nodes) {
  for (auto& [name, one] : nodes) {
    if (one.is_switch && is_leaf(nodes, one)) one.level = 0;
  }
  int level = 0;
  for (bool found = true; found; ++level) {
    found = false;
    for (auto& [name, one] : nodes) {
      if (!one.is_switch || one.level >= 0) continue;
      const bool above = std::ranges::any_of(one.cables, [&](const auto& cable) {
        const IbNode* other = peer(nodes, cable.first);
        return other && other->is_switch && other->level == level;
      });
      if (above) one.level = level + 1, found = true;
    }
  }
  return level;
}

/// Numbers of cables and peers below and above a switch.
struct Ports {
  int cables_down = 0, cables_up = 0, switches_down = 0, switches_up = 0;
};

Ports ports_of(const IbNodes& nodes, const IbNode& one) {
  Ports ports;
  for (const auto& [name, cables] : one.cables) {
    const IbNode* other = peer(nodes, name);
    if (!other) continue;
    if (other->is_switch && other->level > one.level) {
      ports.cables_up += cables;
      ++ports.switches_up;
    } else if (!other->is_switch || other->level < one.level) {
      ports.cables_down += cables;
      ++ports.switches_down;
    }
  }
  return ports;
}

void add_levels(const IbNodes& nodes, int levels, DiscoveredFabric& fabric) {
  for (int level = 0; level + 1 < levels; ++level) {
    Ports most;
    bool equal = true;
    for (const auto& [name, one] : nodes) {
      if (!one.is_switch || one.level != level) continue;
      const Ports ports = ports_of(nodes, one);
      equal = equal && (most.cables_up == 0 || most.cables_up == ports.cables_up);
      most.cables_down = std::max(most.cables_down, ports.cables_down);
      most.cables_up = std::max(most.cables_up, ports.cables_up);
      most.switches_down = std::max(most.switches_down, ports.switches_down);
      most.switches_up = std::max(most.switches_up, ports.switches_up);
    }
    if (!equal)
      fabric.doubts.push_back(fmt::format(
          "Switches of level {} have different numbers of cables up; the largest counts.", level));
    const int down = level == 0 ? most.cables_down : most.switches_down;
    const double taper = static_cast<double>(most.cables_down) / std::max(1, most.cables_up);
    if (taper < 1)
      fabric.doubts.push_back(fmt::format(
          "Switches of level {} have more cables up than down, as if ports were free; no taper is taken.",
          level));
    if (most.switches_up > down)  // a platform's switches have at most as many ports up as down
      fabric.doubts.push_back(fmt::format(
          "Switches of level {} have cables to {} others; a platform has at most the {} ports down, with the "
          "bandwidth of all.",
          level, most.switches_up, down));
    fabric.levels.push_back({down, std::max(1.0, taper), std::clamp(most.switches_up, 1, down), {}});
  }
  fabric.tapers_known = true;
}

/// Connected ports of each host.
std::map<std::string, int> ports_of_hosts(const IbNodes& nodes) {
  std::map<std::string, int> ports;
  for (const auto& [name, one] : nodes) {
    for (const auto& [to, cables] : one.cables)
      if (!one.is_switch) ports[one.host] += cables;
  }
  return ports;
}

/// The number of ports that the hosts with most ports of all have: a storage server may have more than a
/// node, and a management node fewer.
int usual_ports(const std::map<std::string, int>& ports) {
  std::map<int, int> total;  // by ports of a host
  for (const auto& [host, count] : ports) total[count] += count;
  int usual = 0;
  for (const auto& [count, sum] : total) {
    if (usual == 0 || sum >= total[usual]) usual = count;
  }
  return usual;
}

/// Finds the hosts and their connected ports, and removes those that are no nodes.
void add_nodes(IbNodes& nodes, DiscoveredFabric& fabric) {
  const std::map<std::string, int> ports = ports_of_hosts(nodes);
  const int usual = fabric.nics_per_node = usual_ports(ports);
  const auto full = std::ranges::count_if(ports, [&](const auto& one) { return one.second == usual; });
  fabric.nodes = full;
  if (full != std::ssize(ports))
    fabric.doubts.push_back(
        fmt::format("{} of {} hosts have not {} ports and are left out with theirs, such as management and "
                    "storage nodes.",
                    std::ssize(ports) - full, ports.size(), usual));
  std::erase_if(nodes, [&](const auto& one) {
    const auto host = ports.find(one.second.host);
    return !one.second.is_switch && (host == ports.end() || host->second != usual);
  });
  const auto unnamed =
      std::ranges::count_if(nodes, [](const auto& one) { return one.second.host == one.first; });
  if (unnamed > 0)
    fabric.doubts.push_back(fmt::format("{} adapters do not name their host; each counts as one.", unnamed));
}

/// There are rails if each leaf has adapters of one name only.
void add_rails(const IbNodes& nodes, DiscoveredFabric& fabric) {
  std::map<std::string, std::set<std::string>> adapters, hosts;  // by leaf
  for (const auto& [name, one] : nodes) {
    for (const auto& [to, cables] : one.cables) {
      if (one.is_switch) continue;
      adapters[to].insert(one.adapter);
      hosts[to].insert(one.host);
    }
  }
  fabric.rails = fabric.nics_per_node > 1 && std::ranges::all_of(adapters, [&](const auto& leaf) {
                   return leaf.second.size() == 1 && hosts[leaf.first].size() > 1;
                 });
}

/// Adds the number of switches of each level to what the tool found.
void add_switches(const IbNodes& nodes, int levels, DiscoveredFabric& fabric) {
  for (int level = 0; level < levels; ++level) {
    const auto count = std::ranges::count_if(
        nodes, [&](const auto& one) { return one.second.is_switch && one.second.level == level; });
    fabric.found_by += fmt::format("{}{}", level == 0 ? ", switches from the leaves up: " : " + ", count);
  }
}

}  // namespace

DiscoveredFabric read_infiniband_fabric(const std::string& text, const std::string& file) {
  std::map<std::string, int> rates;
  IbNodes nodes = read_nodes(text, file, rates);
  DiscoveredFabric fabric;
  fabric.found_by = "ibnetdiscover";
  add_nodes(nodes, fabric);
  add_rails(nodes, fabric);
  if (fabric.nodes == 0)
    throw InputError(file + ":1: expected channel adapters (Ca N \"H-...\") in addition to the switches");
  const int levels = set_levels(nodes);
  add_levels(nodes, levels, fabric);
  add_switches(nodes, levels, fabric);
  const auto common = std::ranges::max_element(rates, {}, [](const auto& one) { return one.second; });
  if (common != rates.end()) {
    fabric.rate = common->first;
    fabric.port = rate_of(common->first);
  }
  if (rates.empty()) fabric.doubts.push_back("No cable has a rate that is known; that of ports is assumed.");
  if (rates.size() > 1)
    fabric.doubts.push_back(
        fmt::format("Cables have {} different rates; the most common counts.", rates.size()));
  return fabric;
}

}  // namespace stepcast
