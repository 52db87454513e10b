#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <string_view>
#include <utility>

#include "platforms/discovery/discovered.hpp"

namespace stepcast {
namespace {

constexpr const char* kAssumed = "assumed";

/// The rate of one of the device's NVLinks and its source; that of NVLink 3 if its file gives none.
std::pair<double, std::string> nvlink_of(const Device& device) {
  if (device.nvlink.value > 0) return {device.nvlink.value / 1e9, device.nvlink_source};
  return {20, "assumed, about NVLink 3 or 4: no rate of a link of this device is known"};
}

/// Number of GPUs of each PCIe switch. It is 0, which connects GPUs to their sockets, if the switches have
/// different numbers of GPUs or GPUs that are not numbered one after the other.
int devices_per_switch(const DiscoveredServer& server) {
  std::map<int, int> gpus;
  int last = -1;
  for (const ServerDevice& gpu : server.gpus) {
    if (gpu.pcie_switch < 0) return 0;
    if (gpus.contains(gpu.pcie_switch) && gpu.pcie_switch != last) return 0;
    ++gpus[last = gpu.pcie_switch];
  }
  const int first = gpus.empty() ? 0 : gpus.begin()->second;
  const bool equal = std::ranges::all_of(gpus, [&](const auto& one) { return one.second == first; });
  return equal ? first : 0;
}

/// True if the machine's sockets have the GPUs that stepcast gives them: equally many each, in order.
bool evenly_on_sockets(const DiscoveredServer& server) {
  const int gpus = server.gpus.size();
  for (int i = 0; i < gpus; ++i) {
    if (server.gpus[i].socket != i * server.sockets / gpus) return false;
  }
  return true;
}

/// The NICs that share a PCIe switch with a GPU, or all NICs if none does.
struct Nics {
  int count = 1;
  bool on_switch = false;
};

Nics nics_of(const DiscoveredServer& server) {
  const auto on_gpu_switch = [&](const ServerDevice& nic) {
    return nic.pcie_switch >= 0 && std::ranges::any_of(server.gpus, [&](const ServerDevice& gpu) {
             return gpu.pcie_switch == nic.pcie_switch;
           });
  };
  const int near = std::ranges::count_if(server.nics, on_gpu_switch);
  if (near > 0 && devices_per_switch(server) > 0) return {near, true};
  return {std::max<int>(1, server.nics.size()), false};
}

std::string peers_text(const std::vector<PeerLink>& links) {
  std::string text;
  for (const PeerLink& one : links) {
    if (!text.empty()) text += ", ";
    text += one.count == 1 ? fmt::format("[{}, {}]", one.a, one.b)
                           : fmt::format("[{}, {}, {}]", one.a, one.b, one.count);
  }
  return "[" + text + "]";
}

/// A port at an NVSwitch has all links of a device; without NVSwitches, each link stands alone.
std::string nvlink_lines(const DiscoveredPlatform& platform, const DiscoveredServer& server,
                         const Device& device) {
  const int links = server.nvlinks_to_switch;
  if (links == 0 && server.nvlinks.empty()) return "";
  const auto [gigabytes, source] = nvlink_of(device);
  std::string rate = platform.nvlink, from = "given to stepcast init";
  if (rate.empty()) {
    rate = fmt::format("{:g} GB/s", std::max(links, 1) * gigabytes);
    from = source;
    if (links > 0)
      from = fmt::format("{} NVLinks of {:g} GB/s to NVSwitches ({}); {}", links, gigabytes, server.found_by,
                         source);
  }
  std::string text = fmt::format(
      "  peer_link: {{bandwidth: {}, latency: {} us, source: \"{}; latency assumed\"}}  # of one direction\n",
      rate, links > 0 ? 0.25 : 0.4, from);
  if (links == 0)
    text += fmt::format("  peers: {}  # [0, 1, 2] has two such links between 0 and 1\n",
                        peers_text(server.nvlinks));
  return text;
}

const char* kind_of(const DiscoveredServer& server) {
  if (server.gpus.size() == 1) return "single";
  if (server.nvlinks_to_switch > 0) return "switch";
  return server.nvlinks.empty() ? "pcie" : "links";
}

/// Rate and source of the links from GPUs to sockets.
std::string pcie_link(const DiscoveredServer& server, const Device& device, double microseconds) {
  const int generation = device.pcie_generation, lanes = server.pcie_lanes;
  if (!server.gpu_pcie)
    return fmt::format("{{bandwidth: {} GB/s, latency: {:g} us, source: \"PCIe {}.0 x{}, {}\"}}",
                       (12 * lanes / 16) << (generation - 3), microseconds, generation, lanes, kAssumed);
  return fmt::format(
      "{{bandwidth: {:.3g} GB/s, latency: {:g} us, source: \"lstopo: {:.4g} GB/s nominal; three quarters of "
      "it, as NCCL takes 12 of 15.75 GB/s for PCIe 3.0 x16 (PCI_BW in src/graph/topo.h); latency assumed\"}}",
      server.gpu_pcie->value * 12 / 15.75 / 1e9, microseconds, server.gpu_pcie->value / 1e9);
}

/// The link between sockets, with what NCCL counts for the processors of servers with such devices
/// (src/graph/topo.h): 8 GB/s for QPI (2.5.6), 16 for AMD's, 22 from Sapphire Rapids on. Where GPUs have no
/// NVLinks, copies between sockets have no peer access and pass through host memory, so that both directions
/// share the rate (NVIDIA/nccl issue 814).
std::string socket_lines(const DiscoveredServer& server, const Device& device) {
  constexpr std::array kRates{8.0, 16.0, 22.0};  // GB/s
  const auto& link = server.socket_link;
  const std::string source =
      link ? fmt::format("{}: what NCCL counts (src/graph/topo.h of 2.28); latency assumed", link->processor)
           : fmt::format("{}: what NCCL counts for a processor of servers with PCIe {}.0", kAssumed,
                         device.pcie_generation);
  const double rate = link ? link->bandwidth.value / 1e9
                           : kRates.at(std::min<std::size_t>(device.pcie_generation - 3, kRates.size() - 1));
  const bool pcie = std::string_view(kind_of(server)) == "pcie";
  return fmt::format("  inter_socket_link: {{bandwidth: {:g} GB/s, latency: 0.3 us, source: \"{}\"}}\n", rate,
                     source) +
         (pcie ? "  inter_socket_duplex: half  # copies between GPUs without peer access; full if they have "
                 "it\n"
               : "");
}

std::string node_text(const DiscoveredPlatform& platform, const DiscoveredServer& server,
                      const Device& device) {
  const int on_switch = devices_per_switch(server);
  std::string text = fmt::format(
      "node:\n  kind: {}  # single: one device; pcie: devices on PCIe; switch: an NVSwitch too; links: "
      "NVLinks "
      "between pairs\n  devices: {}\n  sockets: {}  # stepcast distributes devices and NICs over them, in "
      "order\n",
      kind_of(server), server.gpus.size(), server.sockets);
  if (on_switch > 0) text += fmt::format("  devices_per_pcie_switch: {}\n", on_switch);
  text += "  device_link: " + pcie_link(server, device, on_switch > 0 ? 0 : 0.5) + "\n";
  if (on_switch > 0) text += "  pcie_switch_link: " + pcie_link(server, device, 0.5) + "\n";
  if (server.sockets > 1) text += socket_lines(server, device);
  if (!device.peer_access && server.gpus.size() > 1)
    text +=
        "  peer_access: false  # the driver allows none; the copies pass through host memory\n"
        "  # staging: 21 GB/s  # all such copies, NCCL's too; nccl-tests: bus bandwidth x devices / 0.93\n";
  text += fmt::format("  memory: {{bandwidth: 100 GB/s, latency: 0.1 us, source: \"{}\"}}\n", kAssumed);
  return text + nvlink_lines(platform, server, device) + fmt::format("  source: \"{}\"\n", server.found_by);
}

std::string bandwidth_text(const DiscoveredPlatform& platform) {
  const auto& fabric = platform.fabric;
  if (!platform.nic.empty())
    return fmt::format("{{value: {}, source: \"given to stepcast init\"}}", platform.nic);
  if (!fabric || !fabric->port)
    return fmt::format("{{value: 12 GB/s, source: \"100 Gbit/s, {}\"}}", kAssumed);
  return fmt::format(
      "{{value: {:.4g} GB/s, source: \"{}: {}, {:.4g} GB/s of data; 96 % of it, as NCCL takes 12 GB/s for "
      "100 Gbit/s (NET_BW in src/graph/topo.h)\"}}",
      fabric->port->value * 0.96 / 1e9, fabric->found_by, fabric->rate, fabric->port->value / 1e9);
}

std::string network_text(const DiscoveredPlatform& platform) {
  Nics nics = platform.server ? nics_of(*platform.server) : Nics{};
  const auto& fabric = platform.fabric;
  if (fabric && !nics.on_switch) nics.count = fabric->nics_per_node;
  const bool tree = fabric && !fabric->levels.empty();
  std::string text = fmt::format(
      "network:\n  kind: {}\n  nics: {}  # of a node\n",
      tree ? "fat_tree"
           : "switch  # a switch that never blocks; fat_tree, dragonfly, torus and sites have further keys",
      nics.count);
  if (nics.on_switch) text += "  nics_on: pcie_switch\n";
  if (tree && fabric->rails) text += "  rails: true\n";
  // The latency of 1.5 us includes the switches, which levels have of their own.
  text += fmt::format("  bandwidth: {}  # of one NIC\n  latency: {{value: {} us, source: \"{}\"}}\n",
                      bandwidth_text(platform), tree ? 1.2 : 1.5, kAssumed);
  if (!tree) return text;
  text += "  levels:\n";
  for (std::size_t i = 0; i < fabric->levels.size(); ++i) {
    const FatTreeLevel& level = fabric->levels[i];
    const int ports = i == 0 && fabric->leaves_count_nodes ? nics.count : 1;  // of a target below
    text += fmt::format(
        "    - {{down: {}, up: {}, taper: {:.6g}, latency: 0.2 us, source: \"{}{}; latency assumed\"}}\n",
        level.down * ports, level.up * ports, level.taper, fabric->found_by,
        fabric->tapers_known ? "" : "; cables up and taper assumed");
  }
  return text;
}

/// The library of NVIDIA's GPUs, or how to name it if the file of a device does not say what it depends on.
std::string software_lines(const DiscoveredPlatform& platform, const Device& device) {
  if (device.compute_capability > 0)
    return fmt::format(
        "software: {{nccl: \"2.18\", source: \"{}\"}}  # without it, collectives are simulated as MPI or "
        "gloo run them\n"
        "#   gpudirect: true in it lets NICs read the memory of GPUs; by default only those on the GPUs' "
        "PCIe switches do\n",
        kAssumed);
  if (!platform.device.ends_with(".yaml")) return "";
  return "# software: {nccl: \"2.18\", compute_capability: 8.9}  # if NCCL sums gradients; without it, "
         "collectives are simulated as\n"
         "#   MPI or gloo run them. CUDA's compute capability of the GPU: developer.nvidia.com/cuda-gpus\n";
}

}  // namespace

std::vector<std::string> platform_doubts(const DiscoveredPlatform& platform) {
  std::vector<std::string> doubts;
  if (platform.server) {
    doubts = platform.server->doubts;
    if (!evenly_on_sockets(*platform.server))
      doubts.push_back(
          "GPUs are not divided over the sockets in order, as stepcast takes them; renumber them if it "
          "matters.");
    const bool some = std::ranges::any_of(platform.server->gpus,
                                          [](const ServerDevice& one) { return one.pcie_switch >= 0; });
    if (some && devices_per_switch(*platform.server) == 0)
      doubts.push_back(
          "PCIe switches have different numbers of GPUs, or not neighbours; GPUs are taken as connected to "
          "sockets.");
    const int listed = platform.server->nics.size(), used = nics_of(*platform.server).count;
    if (listed > used)
      doubts.push_back(fmt::format(
          "{} of {} NICs share no PCIe switch with a GPU and are left out, such as those of storage.",
          listed - used, listed));
    if (listed == 0 && !platform.fabric)
      doubts.push_back(fmt::format("{} lists no NIC; one is assumed.", platform.server->found_by));
  }
  if (!platform.server)
    doubts.push_back(
        "Nothing says the GPUs of a node; one is assumed: give --nvidia-smi, --rocm-smi or --lstopo.");
  if (!platform.fabric) return doubts;
  doubts.insert(doubts.end(), platform.fabric->doubts.begin(), platform.fabric->doubts.end());
  const int nics = platform.server ? nics_of(*platform.server).count : platform.fabric->nics_per_node;
  if (nics != platform.fabric->nics_per_node && !platform.fabric->leaves_count_nodes)
    doubts.push_back(fmt::format("{} shows {} NICs, {} {} cables a node.", platform.server->found_by, nics,
                                 platform.fabric->found_by, platform.fabric->nics_per_node));
  return doubts;
}

DiscoveredServer with_hwloc(DiscoveredServer found, const DiscoveredServer& hwloc) {
  found.found_by += ", " + hwloc.found_by;
  found.gpu_pcie = hwloc.gpu_pcie;
  found.socket_link = hwloc.socket_link;
  return found;
}

std::string platform_file_text(const DiscoveredPlatform& platform, const Device& device) {
  const int nodes = platform.fabric ? platform.fabric->nodes : platform.nodes;
  std::string tools = platform.server ? platform.server->found_by : "";
  if (platform.fabric) tools += (tools.empty() ? "" : ", ") + platform.fabric->found_by;
  std::string doubts;
  for (const std::string& doubt : platform_doubts(platform)) doubts += "# - " + doubt + "\n";
  const DiscoveredServer one_gpu{"assumed: one GPU", {{"GPU0"}}, {}, 1, {}, 0, {}, {}, {}};
  return fmt::format(
             R"(# A platform of stepcast. All keys: stepcast schema platform --table . or docs/reference/platforms.md
# Check it: stepcast check FILE. Look at it: stepcast show platform FILE
# Figures with the source "assumed" are to be replaced by a measurement (stepcast calibrate) or a data sheet. Bandwidths are
# effective: what a benchmark reaches, some 96 % of a NIC's data sheet at best.
{}version: 1
name: {}
source: "{}"
device: {}  # a name (stepcast show device), or a file ending in .yaml with rates of your own device
nodes: {}
max_nodes: {}
# price_per_device_hour: 2.5  # US dollars
)",
             doubts, platform.name, tools, platform.device, nodes, nodes) +
         software_lines(platform, device) + node_text(platform, platform.server.value_or(one_gpu), device) +
         network_text(platform) +
         fmt::format(R"(messages:  # what the software adds to each message, by size
  between_nodes:
    - {{up_to: 64 KiB, overhead: 1 us, bandwidth_factor: 0.5, source: "{0}"}}
    - {{overhead: 5 us, bandwidth_factor: 0.95, source: "{0}"}}
  inside_node:
    - {{overhead: 3 us, bandwidth_factor: 0.95, source: "{0}"}}
storage: {{kind: local, bandwidth: 4 GB/s, latency: 100 us, source: "{0}"}}  # for data loading and checkpoints
)",
                     kAssumed);
}

}  // namespace stepcast
