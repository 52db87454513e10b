#include "sim/simgrid/platform_file.hpp"

#include <fmt/format.h>

#include <set>

#include "core/error.hpp"
#include "core/text.hpp"
#include "platforms/topology.hpp"

namespace stepcast {
namespace {

/// A file of this many hosts has 160,000 routes and some 50 MB, which SimGrid loads in a few seconds.
constexpr int kMostHosts = 400;

/// stepcast knows no speed of CPUs, and SimGrid wants one of every host.
constexpr double kCpuSpeed = 1e9;

std::string disk(const std::string& name, BytesPerSecond bandwidth) {
  return fmt::format("      <disk id=\"{}\" read_bw=\"{}Bps\" write_bw=\"{}Bps\"/>\n", name, bandwidth.value,
                     bandwidth.value);
}

std::string property(const std::string& name, const std::string& value) {
  return fmt::format("      <prop id=\"{}\" value=\"{}\"/>\n", name, value);
}

std::string host(const std::string& name, double speed, const std::string& content) {
  return fmt::format("    <host id=\"{}\" speed=\"{}f\">\n{}    </host>\n", name, speed, content);
}

std::string hosts(const Platform& platform, const Topology& topology, const Device& device) {
  std::string text;
  for (int endpoint = 0; endpoint < platform.devices(); ++endpoint) {
    std::string content = property("device", device.name) +
                          property("memory_bytes", fmt::format("{:.0f}", device.memory.value));
    if (platform.price_per_device_hour > 0)
      content += property("dollars_per_hour", fmt::format("{}", platform.price_per_device_hour));
    text += host(topology.endpoint_name(endpoint), device.peak.value, content);
  }
  const Storage& storage = platform.storage;
  for (int node = 0; node < platform.nodes; ++node) {
    const std::string disks = storage.kind == Storage::Kind::local
                                  ? disk(fmt::format("node{}.disk", node), storage.bandwidth)
                                  : std::string();
    text += host(topology.endpoint_name(platform.host_endpoint(node)), kCpuSpeed, disks);
  }
  if (storage.kind != Storage::Kind::none) {
    const bool shared = storage.kind == Storage::Kind::shared;
    text += host(topology.endpoint_name(platform.storage_endpoint()), kCpuSpeed,
                 shared ? disk("storage.disk", storage.bandwidth) : std::string());
  }
  return text;
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

std::string simgrid_platform_file(const Platform& platform, const Device& device) {
  const int count = platform.endpoints() - (platform.storage.kind == Storage::Kind::none ? 1 : 0);
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
  text += fmt::format("  <zone id=\"{}\" routing=\"Full\">\n", platform.name);
  text += hosts(platform, topology, device);
  for (const int id : used) {
    const Link& link = topology.link(id);
    text += fmt::format("    <link id=\"{}\" bandwidth=\"{}Bps\" latency=\"{}s\"/>\n",
                        topology.dotted_link_name(id), link.bandwidth.value, link.latency.value);
  }
  return text + all_routes + "  </zone>\n</platform>\n";
}

}  // namespace stepcast
