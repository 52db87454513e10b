#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <set>
#include <sstream>

#include "core/error.hpp"
#include "core/text.hpp"
#include "core/yaml.hpp"
#include "platforms/discovery/discovered.hpp"

namespace stepcast {
namespace {

constexpr std::size_t kMostHosts = 1 << 20;
constexpr std::size_t kMostDigits = 9;     // of a number in a host list
constexpr std::size_t kMostLetters = 255;  // of a host's name

/// A switch, or a block of nodes.
struct Switch {
  std::vector<std::string> nodes, switches;
  bool block = false;
  std::string place;
  int level = -1;  ///< 0: a leaf
};

std::string lower(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) -> char { return std::tolower(c); });
  return text;
}

int number_of(const std::string& text, const std::string& place) {
  if (text.size() > kMostDigits)
    throw InputError(fmt::format("{}: expected at most {} digits in a host list, got \"{}\"", place,
                                 kMostDigits, printable(text)));
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0)
    throw InputError(fmt::format("{}: expected a number in a host list, got \"{}\"", place, printable(text)));
  return value;
}

/// Adds the names that a name such as "gpu[01-03,7]" stands for.
void expand(const std::string& name, const std::string& place, std::vector<std::string>& hosts) {
  const std::size_t open = name.find('['), close = name.find(']');
  if (open == std::string::npos && name.size() > kMostLetters)
    throw InputError(fmt::format("{}: expected a host's name of at most {} letters, got \"{}\"", place,
                                 kMostLetters, printable(name)));
  if (open == std::string::npos) {
    if (hosts.size() >= kMostHosts)
      throw InputError(fmt::format("{}: expected at most {} hosts", place, kMostHosts));
    hosts.push_back(name);
    return;
  }
  if (close == std::string::npos || close < open)
    throw InputError(fmt::format("{}: expected \"]\" in \"{}\"", place, printable(name)));
  std::istringstream ranges(name.substr(open + 1, close - open - 1));
  for (std::string range; std::getline(ranges, range, ',');) {
    const std::size_t dash = range.find('-');
    const std::string first = range.substr(0, dash);
    const int from = number_of(first, place);
    const int to = dash == std::string::npos ? from : number_of(range.substr(dash + 1), place);
    if (to < from)
      throw InputError(fmt::format("{}: expected a rising range, got \"{}\"", place, printable(range)));
    for (int i = from; i <= to; ++i)
      expand(fmt::format("{}{:0{}}{}", name.substr(0, open), i, first.size(), name.substr(close + 1)), place,
             hosts);
  }
}

Switch read_switch(const std::string& line, const std::string& place, std::string& name) {
  Switch one;
  one.place = place;
  for (const std::string& word : split_words(line)) {
    const std::size_t equals = word.find('=');
    const std::string key = lower(word.substr(0, equals)),
                      value = equals == std::string::npos ? "" : word.substr(equals + 1);
    if (key == "switchname" || key == "blockname") {
      name = value;
      one.block = key == "blockname";
    } else if (key == "nodes") {
      one.nodes = host_list(value, place);
    } else if (key == "switches") {
      one.switches = host_list(value, place);
    } else if (key != "linkspeed") {
      throw InputError(fmt::format("{}: expected SwitchName=, Nodes=, Switches= or LinkSpeed=, got \"{}\"",
                                   place, printable(word)));
    }
  }
  if (name.empty()) throw InputError(place + ": expected SwitchName=NAME");
  if (one.nodes.empty() == one.switches.empty())
    throw InputError(fmt::format("{}: {}: expected either Nodes= or Switches=", place, printable(name)));
  return one;
}

using Switches = std::map<std::string, Switch>;

void add_switch(Switches& switches, const std::string& name, Switch one, std::size_t& names) {
  const std::string place = one.place;
  names += one.nodes.size() + one.switches.size();
  if (names > kMostHosts)
    throw InputError(fmt::format("{}: expected at most {} hosts and switches in all", place, kMostHosts));
  if (!switches.emplace(name, std::move(one)).second)
    throw InputError(fmt::format("{}: there are two switches {}", place, printable(name)));
}

/// Reads the next line without its comment, and the lines that a "\\" at its end continues.
bool next_line(std::istringstream& lines, std::string& line, int& number) {
  line.clear();
  for (std::string part; std::getline(lines, part);) {
    ++number;
    part = part.substr(0, part.find('#'));
    const auto last = part.find_last_not_of(" \t\r");
    const bool continued = last != std::string::npos && part[last] == '\\';
    line += continued ? part.substr(0, last) : part;
    if (!continued) return true;
  }
  return !line.empty();
}

Switches read_switches(const std::string& text, const std::string& file) {
  Switches switches;
  std::istringstream lines(text);
  int number = 0;
  std::size_t names = 0;  // in all lists
  for (std::string line; next_line(lines, line, number);) {
    const auto first = line.find_first_not_of(" \t\r");
    if (first == std::string::npos || lower(line.substr(first, 11)) == "blocksizes=") continue;
    std::string name;
    const std::string place = fmt::format("{}:{}", file, number);
    Switch one = read_switch(line, place, name);
    add_switch(switches, name, std::move(one), names);
  }
  if (switches.empty())
    throw InputError(file + ":1: expected lines SwitchName=NAME Nodes=... or Switches=...");
  return switches;
}

/// Reads the switches or blocks of the default topology of a topology.yaml, else of the first one that has
/// some.
Switches read_yaml_switches(const std::string& text, const std::string& file,
                            std::vector<std::string>& doubts) {
  const YamlNode root = parse_yaml(text, file);
  std::optional<YamlMap> chosen;
  if (const std::size_t all = root.items.size(); all > 1)
    doubts.push_back(
        fmt::format("One of the {} topologies is read: the default one, or else the first.", all));
  for (const YamlValue& value : YamlValue(root, "").list()) {
    const YamlMap one = value.any_map();
    if (!one.has("tree") && !one.has("block")) continue;
    const auto preferred = one.maybe("cluster_default");
    if (!chosen || (preferred && preferred->boolean())) chosen.emplace(one);
  }
  if (!chosen) throw InputError(file + ":1: expected a topology with tree: or block:");
  const bool tree = chosen->has("tree");
  const YamlMap plugin = chosen->at(tree ? "tree" : "block").any_map();
  Switches switches;
  std::size_t names = 0;
  for (const YamlValue& value : plugin.at(tree ? "switches" : "blocks").list()) {
    const YamlMap map = value.map({tree ? "switch" : "block", tree ? "children" : "nodes", "nodes"});
    Switch one;
    one.block = !tree;
    one.place = to_string(value.node().place);
    if (const auto nodes = map.maybe("nodes")) one.nodes = host_list(nodes->text(), one.place);
    if (const auto below = map.maybe("children")) one.switches = host_list(below->text(), one.place);
    const std::string name = map.at(tree ? "switch" : "block").text();
    if (one.nodes.empty() == one.switches.empty())
      throw InputError(fmt::format("{}: {}: expected either nodes or children", one.place, printable(name)));
    add_switch(switches, name, std::move(one), names);
  }
  if (switches.empty()) throw InputError(file + ":1: expected at least one switch or block");
  return switches;
}

/// @throws InputError for a node below two switches
void check_once(const Switches& switches) {
  std::set<std::string> nodes;
  for (const auto& [name, one] : switches) {
    for (const std::string& node : one.nodes) {
      if (!nodes.insert(node).second)
        throw InputError(fmt::format("{}: {}: the node {} is below another switch too", one.place,
                                     printable(name), printable(node)));
    }
  }
}

/// Names what the levels of a fabric do not tell: leaves of different sizes, switches without one above them.
void add_tree_doubts(const Switches& switches, DiscoveredFabric& fabric) {
  std::set<std::string> below;
  std::size_t least = 0, most = 0;
  for (const auto& [name, one] : switches) {
    below.insert(one.switches.begin(), one.switches.end());
    const std::size_t nodes = one.nodes.size();
    if (nodes == 0) continue;
    least = least == 0 ? nodes : std::min(least, nodes);
    most = std::max(most, nodes);
  }
  const auto tops =
      std::ranges::count_if(switches, [&](const auto& one) { return !below.contains(one.first); });
  if (least < most)
    fabric.doubts.push_back(fmt::format("Leaves have {} to {} nodes; the largest counts.", least, most));
  if (tops > 1 && !switches.begin()->second.block)
    fabric.doubts.push_back(fmt::format("{} switches have none above them; they are taken as one.", tops));
}

/// The level of a switch: 0 if it has nodes, else one more than that of the highest switch below it.
int level_of(Switches& switches, const std::string& name, int depth) {
  Switch& one = switches.at(name);
  if (depth > 7) throw InputError(one.place + ": expected at most 7 levels of switches without a cycle");
  if (one.level >= 0) return one.level;
  int level = 0;
  for (const std::string& below : one.switches) {
    if (!switches.contains(below))
      throw InputError(fmt::format("{}: Switches: there is no switch {}", one.place, printable(below)));
    level = std::max(level, level_of(switches, below, depth + 1) + 1);
  }
  return one.level = level;
}

}  // namespace

std::vector<std::string> host_list(const std::string& text, const std::string& place) {
  std::vector<std::string> hosts;
  std::string name;
  int depth = 0;
  for (const char c : text + ",") {
    if (c == '[') ++depth;
    if (c == ']') --depth;
    if (c == ',' && depth == 0) {
      if (!name.empty()) expand(name, place, hosts);
      name.clear();
    } else {
      name += c;
    }
  }
  if (!name.empty()) throw InputError(fmt::format("{}: expected \"]\" in \"{}\"", place, printable(text)));
  return hosts;
}

DiscoveredFabric read_slurm_topology(const std::string& text, const std::string& file) {
  const bool yaml =
      text.find("SwitchName") == std::string::npos && text.find("topology:") != std::string::npos;
  DiscoveredFabric fabric;
  Switches switches = yaml ? read_yaml_switches(text, file, fabric.doubts) : read_switches(text, file);
  check_once(switches);
  std::vector<int> most;  // of nodes or switches below, by level
  fabric.found_by = yaml ? "topology.yaml of Slurm" : "topology.conf of Slurm";
  fabric.leaves_count_nodes = true;
  for (auto& [name, one] : switches) {
    const std::size_t level = level_of(switches, name, 0);
    if (most.size() <= level) most.resize(level + 1);
    most[level] = std::max<int>(most[level], std::max(one.nodes.size(), one.switches.size()));
    fabric.nodes += one.nodes.size();
  }
  if (switches.begin()->second.block) {
    most.push_back(0);  // what joins the blocks
    fabric.doubts.push_back("Slurm's blocks are taken as leaf switches; what joins them is not in the file.");
  }
  most.pop_back();  // the top is as large as needed
  add_tree_doubts(switches, fabric);
  for (const int down : most) fabric.levels.push_back({down, 1, down, {}});
  fabric.doubts.push_back("Slurm's file has neither rates nor the number of cables up: no taper is assumed.");
  return fabric;
}

}  // namespace stepcast
