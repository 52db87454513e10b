#include "validate/measure/platform_file.hpp"

#include <fmt/format.h>

#include <cmath>

#include "report/results/results.hpp"

namespace stepcast {
namespace {

/// Double-quoted YAML; characters that would need an escape become spaces.
std::string quoted(const std::string& text) {
  std::string safe;
  for (const char c : text) safe += c == '"' || c == '\\' || c < ' ' || c == 0x7f ? ' ' : c;
  return '"' + safe + '"';
}

std::string seconds(Seconds time) {
  return shortest(time.value) + " s";
}

std::string rate(BytesPerSecond rate) {
  return shortest(rate.value) + " B/s";
}

std::string costs_text(const std::vector<MessageCost>& costs) {
  std::string text;
  for (const MessageCost& cost : costs) {
    const std::string limit =
        std::isfinite(cost.up_to.value) ? fmt::format("up_to: {} B, ", shortest(cost.up_to.value)) : "";
    text += fmt::format("    - {{{}overhead: {}, bandwidth_factor: {}}}\n", limit, seconds(cost.overhead),
                        shortest(cost.bandwidth_factor));
  }
  return text;
}

const char* const kFree = "    - {overhead: 0 s, bandwidth_factor: 1}\n";

std::string one_machine(const MeasuredPlatform& platform) {
  const LinkTable& links = platform.links;
  return fmt::format(
      "nodes: 1\nmax_nodes: 1\n"
      "node:\n  kind: pcie\n  devices: {}\n"
      "  device_link: {{bandwidth: {}, latency: {}, source: \"measured; half of the latency at each end\"}}\n"
      "  memory: {{bandwidth: {}, latency: 0 s, source: \"not used\"}}\n"
      "network: {{kind: switch, bandwidth: {}, latency: 0 s, source: \"not used: one node\"}}\n"
      "messages:\n  inside_node:\n{}  between_nodes:\n{}",
      platform.cluster.ranks, rate(links.bandwidth), seconds(links.latency / 2), rate(links.bandwidth),
      rate(links.bandwidth), costs_text(links.costs), kFree);
}

std::string network_text(const MeasuredPlatform& platform) {
  const Cluster& cluster = platform.cluster;
  const std::string ends = fmt::format("bandwidth: {}, latency: {}, source: \"measured\"",
                                       rate(platform.links.bandwidth), seconds(platform.links.latency));
  if (cluster.racks == 1) return fmt::format("network: {{kind: switch, {}}}\n", ends);
  const int nodes = cluster.ranks / 2;
  return fmt::format(
      "network:\n  kind: fat_tree\n  bandwidth: {}\n  latency: {}\n  source: \"measured inside a rack\"\n"
      "  levels: [{{down: {}, up: 1, taper: {}, latency: 0 s, source: \"rates that were set: {} nodes of {} "
      "and an "
      "uplink of {}\"}}]\n",
      rate(platform.links.bandwidth), seconds(platform.links.latency), nodes,
      shortest(nodes * cluster.rate / cluster.uplink), nodes, rate_text(cluster.rate),
      rate_text(cluster.uplink));
}

std::string several_nodes(const MeasuredPlatform& platform) {
  return fmt::format(
      "nodes: {}\nmax_nodes: {}\n"
      "node:\n  kind: single\n"
      "  device_link: {{bandwidth: 1000 GB/s, latency: 0 s, source: \"copies count in messages\"}}\n"
      "  memory: {{bandwidth: 1000 GB/s, latency: 0 s, source: \"not used\"}}\n"
      "{}messages:\n  between_nodes:\n{}  inside_node:\n{}",
      platform.cluster.ranks, platform.cluster.ranks, network_text(platform),
      costs_text(platform.links.costs), kFree);
}

}  // namespace

std::string platform_text(const MeasuredPlatform& platform) {
  const bool one = !platform.cluster.several_nodes();
  return fmt::format("name: {}\nsource: {}\ndevice: {}\n{}", quoted(platform.name), quoted(platform.source),
                     platform.device, one ? one_machine(platform) : several_nodes(platform));
}

}  // namespace stepcast
