#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/results/results.hpp"
#include "validate/measure/link_results.hpp"

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

/// Costs of messages between programs over a link of one message at a time, from their measured times.
/// Without these, such a message takes what sending and receiving at once takes, because its sender copies it
/// once more.
std::vector<MessageCost> program_costs(const LinkTable& links) {
  std::vector<MessageCost> costs = links.costs;
  if (links.program_times.empty()) {
    for (MessageCost& cost : costs) cost.bandwidth_factor /= links.one_way;
    return costs;
  }
  const LinkTable own = fitted_link_table(links.program_times);
  costs = own.costs;
  for (MessageCost& cost : costs) {
    cost.overhead.value = std::max(0.0, (own.latency + cost.overhead - links.latency).value);
    cost.bandwidth_factor =
        std::min(1.0, cost.bandwidth_factor * own.bandwidth.value / (links.one_way * links.bandwidth.value));
  }
  return costs;
}

/// Links of devices whose two directions share what a core can copy. The link behind them, one for each
/// device, has the rate of a message one way.
std::string half_duplex_links(const LinkTable& links) {
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
  const std::string devices =
      half_duplex
          ? half_duplex_links(links)
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
      half_duplex || !links.program_times.empty()
          ? "  programs_inside_node:\n" + costs_text(program_costs(links))
          : std::string(),
      kFree);
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
