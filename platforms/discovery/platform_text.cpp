#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string_view>

#include "platforms/discovery/discovered.hpp"
#include "platforms/software.hpp"

namespace stepcast {
namespace {

constexpr const char* kAssumed = "assumed";

struct NvlinkRate {
  const char* device;  ///< beginning of the names of its device files
  double gigabytes;    ///< effective rate of one link in one direction [GB/s]
  const char* source;
};

/// The rate of the device's NVLinks; that of NVLink 3 for an unknown device.
NvlinkRate nvlink_of(const std::string& device) {
  static const std::vector<NvlinkRate> rates{
      {"p100", 18, "NVLink 1: PASCAL_NVLINK_WIDTH in NCCL, src/graph/topo.h"},
      {"v100", 21, "NVLink 2: VOLTA_NVLINK_WIDTH in NCCL 2.5.6, src/graph/topo.h"},
      {"a100", 20, "NVLink 3: SM80_NVLINK_BW in NCCL, src/graph/topo.h"},
      {"h100", 20.6, "NVLink 4: SM90_NVLINK_BW in NCCL, src/graph/topo.h"},
      {"h200", 20.6, "NVLink 4: SM90_NVLINK_BW in NCCL, src/graph/topo.h"},
      {"gh200", 20.6, "NVLink 4: SM90_NVLINK_BW in NCCL, src/graph/topo.h"},
      {"mi300x", 64, "xGMI: 128 GB/s a link in both directions, AMD CDNA 3 white paper"},
      {"mi250x", 50, "xGMI: 50 GB/s a link and direction, AMD CDNA 2 white paper"},
      {"b200", 41.2, "NVLink 5: twice NVLink 4, SM90_NVLINK_BW in NCCL, src/graph/topo.h"},
      {"gb200", 41.2, "NVLink 5: twice NVLink 4, SM90_NVLINK_BW in NCCL, src/graph/topo.h"},
      {"b300", 41.2, "NVLink 5: twice NVLink 4, SM90_NVLINK_BW in NCCL, src/graph/topo.h"},
      {"gb300", 41.2, "NVLink 5: twice NVLink 4, SM90_NVLINK_BW in NCCL, src/graph/topo.h"}};
  for (const NvlinkRate& one : rates) {
    if (device.starts_with(one.device)) return one;
  }
  return {"", 20, "assumed, about NVLink 3 or 4: no rate of a link of this device is known"};
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

std::string nvlink_lines(const DiscoveredServer& server, const std::string& device) {
  const NvlinkRate rate = nvlink_of(device);
  if (server.nvlinks_to_switch > 0)
    return fmt::format(
        "  peer_link: {{bandwidth: {:g} GB/s, latency: 0.25 us, source: \"{} NVLinks of {:g} GB/s to "
        "NVSwitches ({}); {}; latency assumed\"}}\n",
        server.nvlinks_to_switch * rate.gigabytes, server.nvlinks_to_switch, rate.gigabytes, server.found_by,
        rate.source);
  if (server.nvlinks.empty()) return "";
  return fmt::format(
      "  peer_link: {{bandwidth: {:g} GB/s, latency: 0.4 us, source: \"{}; latency assumed\"}}\n  peers: {}  "
      "# {}\n",
      rate.gigabytes, rate.source, peers_text(server.nvlinks), server.found_by);
}

const char* kind_of(const DiscoveredServer& server) {
  if (server.gpus.size() == 1) return "single";
  if (server.nvlinks_to_switch > 0) return "switch";
  return server.nvlinks.empty() ? "pcie" : "links";
}

/// Rate and source of the links from GPUs to sockets.
std::string pcie_link(const DiscoveredServer& server, const std::string& device, double microseconds) {
  const int generation = pcie_generation_of(device);
  if (!server.gpu_pcie)
    return fmt::format("{{bandwidth: {} GB/s, latency: {:g} us, source: \"PCIe {}.0 x16, {}\"}}",
                       12 << (generation - 3), microseconds, generation, kAssumed);
  return fmt::format(
      "{{bandwidth: {:.3g} GB/s, latency: {:g} us, source: \"lstopo: {:.4g} GB/s nominal; three quarters of "
      "it, as NCCL takes 12 of 15.75 GB/s for PCIe 3.0 x16 (PCI_BW in src/graph/topo.h); latency assumed\"}}",
      server.gpu_pcie->value * 12 / 15.75 / 1e9, microseconds, server.gpu_pcie->value / 1e9);
}

/// The link between sockets. Where GPUs have no NVLinks, copies between sockets have no peer access and pass
/// through host memory, so that both directions share the rate (NVIDIA/nccl issue 814).
std::string socket_lines(const DiscoveredServer& server) {
  const std::string source =
      server.socket_link
          ? fmt::format("{}: what NCCL counts (src/graph/topo.h of 2.28); latency assumed",
                        server.socket_link->processor)
          : fmt::format(
                "{}: {} does not print the processor; NCCL counts 6 (Broadwell) to 40 GB/s (Emerald Rapids)",
                kAssumed, server.found_by);
  const double rate = server.socket_link ? server.socket_link->bandwidth.value / 1e9 : 16;
  const bool pcie = std::string_view(kind_of(server)) == "pcie";
  return fmt::format("  inter_socket_link: {{bandwidth: {:g} GB/s, latency: 0.3 us, source: \"{}\"}}\n", rate,
                     source) +
         (pcie ? "  inter_socket_duplex: half  # copies between GPUs without peer access; full if they have "
                 "it\n"
               : "");
}

std::string node_text(const DiscoveredServer& server, const std::string& device) {
  const int on_switch = devices_per_switch(server);
  std::string text = fmt::format("node:\n  kind: {}\n  devices: {}\n  sockets: {}\n", kind_of(server),
                                 server.gpus.size(), server.sockets);
  if (on_switch > 0) text += fmt::format("  devices_per_pcie_switch: {}\n", on_switch);
  text += "  device_link: " + pcie_link(server, device, on_switch > 0 ? 0 : 0.5) + "\n";
  if (on_switch > 0) text += "  pcie_switch_link: " + pcie_link(server, device, 0.5) + "\n";
  if (server.sockets > 1) text += socket_lines(server);
  text += fmt::format("  memory: {{bandwidth: 100 GB/s, latency: 0.1 us, source: \"{}\"}}\n", kAssumed);
  return text + nvlink_lines(server, device) + fmt::format("  source: \"{}\"\n", server.found_by);
}

std::string bandwidth_text(const DiscoveredPlatform& platform) {
  const auto& fabric = platform.fabric;
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
  std::string text =
      fmt::format("network:\n  kind: {}\n  nics: {}\n", tree ? "fat_tree" : "switch", nics.count);
  if (nics.on_switch) text += "  nics_on: pcie_switch\n";
  if (tree && fabric->rails) text += "  rails: true\n";
  text += fmt::format("  bandwidth: {}\n  latency: {{value: 1.2 us, source: \"{}\"}}\n",
                      bandwidth_text(platform), kAssumed);
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

int pcie_generation_of(const std::string& device) {
  const std::string name = device.substr(device.rfind('/') + 1);
  if (name.starts_with("mi3")) return 5;
  const int capability = compute_capability_of(device).value_or(80);
  return capability >= 90 ? 5 : capability >= 80 ? 4 : 3;
}

DiscoveredServer with_hwloc(DiscoveredServer found, const DiscoveredServer& hwloc) {
  found.found_by += ", " + hwloc.found_by;
  found.gpu_pcie = hwloc.gpu_pcie;
  found.socket_link = hwloc.socket_link;
  return found;
}

std::string platform_file_text(const DiscoveredPlatform& platform) {
  const int nodes = platform.fabric ? platform.fabric->nodes : platform.nodes;
  std::string tools = platform.server ? platform.server->found_by : "";
  if (platform.fabric) tools += (tools.empty() ? "" : ", ") + platform.fabric->found_by;
  std::string doubts;
  for (const std::string& doubt : platform_doubts(platform)) doubts += "# - " + doubt + "\n";
  std::string text = fmt::format(
      "# A platform of stepcast, written by stepcast import-platform. Figures with the source \"assumed\" "
      "are to be replaced\n# by a measurement (stepcast calibrate) or a data sheet.\n"
      "# Check it: stepcast check FILE. Look at it: stepcast show platform FILE\n{}name: "
      "{}\nsource: \"{}\"\ndevice: {}\nnodes: {}\nmax_nodes: {}\n",
      doubts, platform.name, tools, platform.device, nodes, nodes);
  text += platform.server
              ? node_text(*platform.server, platform.device)
              : node_text({"assumed: one GPU", {{"GPU0"}}, {}, 1, {}, 0, {}, {}, {}}, platform.device);
  text += network_text(platform);
  return text + fmt::format(
                    "messages:  # what the software adds to each message, by size\n"
                    "  between_nodes:\n"
                    "    - {{up_to: 64 KiB, overhead: 1 us, bandwidth_factor: 0.5, source: \"{0}\"}}\n"
                    "    - {{overhead: 5 us, bandwidth_factor: 0.95, source: \"{0}\"}}\n"
                    "  inside_node:\n"
                    "    - {{overhead: 3 us, bandwidth_factor: 0.95, source: \"{0}\"}}\n"
                    "storage: {{kind: local, bandwidth: 4 GB/s, latency: 100 us, source: \"{0}\"}}\n",
                    kAssumed);
}

}  // namespace stepcast
