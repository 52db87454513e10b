#include "sim/simgrid/platform_file.hpp"

#include <fmt/format.h>

#include <set>

#include "core/error.hpp"
#include "core/text.hpp"
#include "sim/simgrid/simgrid_host.hpp"

namespace stepcast {
namespace {

/// A file of this many hosts has 160,000 routes and some 50 MB, which SimGrid loads in a few seconds.
constexpr int kMostHosts = 400;

/// Text inside quotes: names of platforms and devices are the user's.
std::string quoted(const std::string& text) {
  std::string safe;
  for (const char c : text) {
    safe += c == '&' ? "&amp;" : c == '<' ? "&lt;" : c == '"' ? "&quot;" : std::string(1, c);
  }
  return safe;
}

std::string host_element(const SimGridHost& host) {
  std::string text = fmt::format("    <host id=\"{}\" speed=\"{}f\">\n", host.name, host.flops_per_second);
  if (!host.disk.empty()) {
    text += fmt::format("      <disk id=\"{0}\" read_bw=\"{1}Bps\" write_bw=\"{1}Bps\"/>\n", host.disk,
                        host.disk_bandwidth.value);
  }
  for (const auto& [name, value] : host.properties)
    text += fmt::format("      <prop id=\"{}\" value=\"{}\"/>\n", name, quoted(value));
  return text + "    </host>\n";
}

/// The routes between every two of `count` endpoints. Adds their links to `used`.
std::string routes(const Topology& topology, int count, std::set<int>& used) {
  std::string text;
  std::vector<int> links;
  for (int from = 0; from < count; ++from) {
    for (int to = 0; to < count; ++to) {
      if (from == to) continue;
      links.clear();
      topology.route(from, to, links);
      text += fmt::format("    <route src=\"{}\" dst=\"{}\" symmetrical=\"NO\">",
                          topology.endpoint_name(from), topology.endpoint_name(to));
      for (const int id : links) text += fmt::format("<link_ctn id=\"{}\"/>", topology.dotted_link_name(id));
      text += "</route>\n";
      used.insert(links.begin(), links.end());
    }
  }
  return text;
}

}  // namespace

std::string simgrid_platform_file(const Platform& platform) {
  const int count = simgrid_host_count(platform);
  if (count > kMostHosts) {
    throw InputError(fmt::format(
        "{}: expected at most {} devices, CPUs and storage together in a file of SimGrid, which names the "
        "route of every two of them, got {}; --nodes {} would fit",
        platform.name, kMostHosts, count, (kMostHosts - 1) / (platform.devices_per_node + 1)));
  }
  const Topology topology(platform);
  std::set<int> used;
  const std::string all_routes = routes(topology, count, used);
  std::string text =
      "<?xml version=\"1.0\"?>\n<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n"
      "<!-- Written by \"stepcast show platform --simgrid\". Links are fair if SimGrid runs with\n"
      "     cfg=network/model:CM02 cfg=network/crosstraffic:0 cfg=network/TCP-gamma:1e15 -->\n"
      "<platform version=\"4.1\">\n";
  text += fmt::format("  <zone id=\"{}\" routing=\"Full\">\n", quoted(platform.name));
  for (int endpoint = 0; endpoint < count; ++endpoint)
    text += host_element(simgrid_host(platform, topology, endpoint));
  for (const int id : used) {
    const Link& link = topology.link(id);
    text += fmt::format("    <link id=\"{}\" bandwidth=\"{}Bps\" latency=\"{}s\"/>\n",
                        topology.dotted_link_name(id), link.bandwidth.value, link.latency.value);
  }
  return text + all_routes + "  </zone>\n</platform>\n";
}

}  // namespace stepcast
