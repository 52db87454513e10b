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

/// Links of devices whose two directions share what a core can copy. The link behind them, one for each
/// device, has the rate of a message one way. A message between programs is copied once more, by its sender,
/// which takes what sending and receiving at once takes.
std::string half_duplex_links(const LinkTable& links, std::vector<MessageCost>& programs) {
  for (MessageCost& cost : programs) cost.bandwidth_factor /= links.one_way;
  return fmt::format(
      "  device_link: {{bandwidth: {}, latency: {}, source: \"measured both ways at once; half of the "
      "latency "
      "at each end\"}}\n"
      "  device_link_duplex: half\n  devices_per_pcie_switch: 1\n"
      "  pcie_switch_link: {{bandwidth: {}, latency: 0 s, source: \"measured one way\"}}\n",
      rate(2 * links.bandwidth), seconds(links.latency / 2), rate(links.one_way * links.bandwidth));
}

/// The host is a place of servers, whose rank is a core as those of the workers are.
std::string one_machine(const MeasuredPlatform& platform) {
  const LinkTable& links = platform.links;
  const bool half_duplex = links.one_way > 1;
  const BytesPerSecond one_way = links.one_way * links.bandwidth;
  std::vector<MessageCost> programs = links.costs;
  const std::string devices =
      half_duplex
          ? half_duplex_links(links, programs)
          : fmt::format(
                "  device_link: {{bandwidth: {}, latency: {}, source: \"measured; half of the latency at "
                "each end\"}}\n",
                rate(links.bandwidth), seconds(links.latency / 2));
  return fmt::format(
      "nodes: 1\nmax_nodes: 1\n"
      "node:\n  kind: pcie\n  devices: {}\n{}"
      "  memory: {{bandwidth: {}, latency: {}, source: \"as a device\"}}\n"
      "network: {{kind: switch, bandwidth: {}, latency: 0 s, source: \"not used: one node\"}}\n"
      "messages:\n  inside_node:\n{}{}  between_nodes:\n{}",
      platform.cluster.ranks, devices, rate(one_way), seconds(links.latency / 2), rate(links.bandwidth),
      costs_text(links.costs),
      half_duplex ? "  programs_inside_node:\n" + costs_text(programs) : std::string(), kFree);
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

std::string storage_text(const MeasuredPlatform& platform) {
  if (!platform.storage) return {};
  return fmt::format(
      "storage: {{kind: local, bandwidth: {}, latency: {}, source: \"measured, all ranks at once\"}}\n",
      rate(platform.storage->bandwidth), seconds(platform.storage->latency));
}

}  // namespace

std::string platform_text(const MeasuredPlatform& platform) {
  const bool one = !platform.cluster.several_nodes();
  return fmt::format("name: {}\nsource: {}\ndevice: {}\n{}{}", quoted(platform.name), quoted(platform.source),
                     platform.device, one ? one_machine(platform) : several_nodes(platform),
                     storage_text(platform));
}

}  // namespace stepcast
