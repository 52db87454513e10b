#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <sstream>

#include "core/error.hpp"
#include "core/text.hpp"
#include "platforms/discovery/discovered.hpp"

namespace stepcast {
namespace {

constexpr std::size_t kMostHosts = 1 << 20;
constexpr std::size_t kMostDigits = 9;     // of a number in a host list
constexpr std::size_t kMostLetters = 255;  // of a host's name

struct Switch {
  std::vector<std::string> nodes, switches;
  std::string place;
  int level = -1;  ///< 0: a leaf
};

std::string lower(std::string text) {
  std::ranges::transform(text, text.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
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
  std::istringstream words(line);
  for (std::string word; words >> word;) {
    const std::size_t equals = word.find('=');
    const std::string key = lower(word.substr(0, equals)),
                      value = equals == std::string::npos ? "" : word.substr(equals + 1);
    if (key == "switchname") {
      name = value;
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

std::map<std::string, Switch> read_switches(const std::string& text, const std::string& file) {
  std::map<std::string, Switch> switches;
  std::istringstream lines(text);
  int number = 0;
  std::size_t names = 0;  // in all lists
  for (std::string line; std::getline(lines, line);) {
    ++number;
    line = line.substr(0, line.find('#'));
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    std::string name;
    const std::string place = fmt::format("{}:{}", file, number);
    Switch one = read_switch(line, place, name);
    names += one.nodes.size() + one.switches.size();
    if (names > kMostHosts)
      throw InputError(fmt::format("{}: expected at most {} hosts and switches in all", place, kMostHosts));
    if (!switches.emplace(name, std::move(one)).second)
      throw InputError(fmt::format("{}: there are two switches {}", place, printable(name)));
  }
  if (switches.empty())
    throw InputError(file + ":1: expected lines SwitchName=NAME Nodes=... or Switches=...");
  return switches;
}

/// The level of a switch: 0 if it has nodes, else one more than that of the highest switch below it.
int level_of(std::map<std::string, Switch>& switches, const std::string& name, int depth) {
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
  std::map<std::string, Switch> switches = read_switches(text, file);
  std::vector<int> most;  // of nodes or switches below, by level
  DiscoveredFabric fabric;
  fabric.found_by = "topology.conf of Slurm";
  fabric.leaves_count_nodes = true;
  for (auto& [name, one] : switches) {
    const std::size_t level = static_cast<std::size_t>(level_of(switches, name, 0));
    if (most.size() <= level) most.resize(level + 1);
    most[level] = std::max(most[level], static_cast<int>(std::max(one.nodes.size(), one.switches.size())));
    fabric.nodes += static_cast<int>(one.nodes.size());
  }
  most.pop_back();  // the top is as large as needed
  for (const int down : most) fabric.levels.push_back({down, 1, down, {}});
  fabric.doubts.push_back("Slurm's file has neither rates nor the number of cables up: no taper is assumed.");
  return fabric;
}

}  // namespace stepcast
