#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/typed_numbers.hpp"
#include "platforms/platform.hpp"

namespace stepcast {

/// A GPU or NIC of a server, and where it is connected.
struct ServerDevice {
  std::string name;      ///< as the tool prints it
  int socket = 0;        ///< socket or NUMA domain, counted from 0
  int pcie_switch = -1;  ///< PCIe switch, counted from 0; -1: connected to its socket
};

/// What NCCL counts for the link between sockets of a processor.
struct SocketLink {
  BytesPerSecond bandwidth;
  std::string processor;
};

/// The link between sockets by the processor's vendor, family and model as CPUID gives them, or by
/// `processor` alone (POWER9). Source: the constants of NCCL 2.28, src/graph/topo.h, and the models of
/// src/graph/topo.cc.
/// @return none for an unknown processor
std::optional<SocketLink> nccl_socket_link(const std::string& vendor, int family, int model,
                                           const std::string& processor);

/// The inside of a server as tools print it.
struct DiscoveredServer {
  std::string found_by;  ///< the command, such as "nvidia-smi topo -m"
  std::vector<ServerDevice> gpus, nics;
  int sockets = 1;
  std::vector<PeerLink> nvlinks;               ///< pairs of GPUs with direct NVLinks
  int nvlinks_to_switch = 0;                   ///< NVLinks of each GPU to NVSwitches; 0: no NVSwitch
  std::optional<BytesPerSecond> gpu_pcie;      ///< nominal bandwidth of a GPU's PCIe link
  std::optional<SocketLink> socket_link = {};  ///< none: the tool does not say the processor
  std::vector<std::string> doubts =
      {};               ///< what the tool does not say or the reader simplifies, as sentences
  int pcie_lanes = 16;  ///< of a GPU's PCIe link; used without `gpu_pcie`
};

/// The network between nodes as tools print it.
struct DiscoveredFabric {
  std::string found_by;
  int nodes = 0;
  int nics_per_node = 1;               ///< ports of a node that are connected
  std::optional<BytesPerSecond> port;  ///< data rate of a port; none: the tool does not say
  std::string rate;                    ///< as printed, such as "4xEDR"
  bool rails = false;                  ///< NIC k of neighbouring nodes share a leaf switch
  std::vector<FatTreeLevel> levels;    ///< from the leaves up, without the top; latencies are not known
  bool tapers_known = false;
  bool leaves_count_nodes = false;  ///< `down` of the first level counts nodes, not ports
  std::vector<std::string> doubts;
};

/// Reads what `nvidia-smi topo -m` prints: a matrix of GPUs and NICs whose cells name the path between two of
/// them (X, NV#, PIX, PXB, PHB, NODE, SYS, or SOC in old versions), and the NUMA domain of each GPU.
///
/// GPUs that PIX or PXB joins, directly or by a NIC, share a PCIe switch. NICs that PIX joins with each other
/// and with no GPU are functions of one NIC. If all pairs have the same number of NVLinks, and a GPU cannot
/// have as many to each of its peers, the links lead to NVSwitches.
/// @throws InputError `FILE:LINE: ...`
DiscoveredServer read_nvidia_topology(const std::string& text, const std::string& file);

/// Reads what `rocm-smi --showtopo` prints: the table of link types (XGMI, PCIE) and the NUMA node of each
/// GPU. Each pair with XGMI has one link, as the tool prints no number of them.
/// @throws InputError `FILE:LINE: ...`
DiscoveredServer read_rocm_topology(const std::string& text, const std::string& file);

/// The fabric that `ibnetdiscover` prints: switches, channel adapters (CA) and the cables between their
/// ports. The first word of a CA's description is its node; a CA without a host's name is a node of its own,
/// and aggregation nodes (SHARP) are none. Switches with CAs are leaves; the others, and those with few CAs
/// among leaves with many, stand one level above the lowest switches that they are connected to.
/// @throws InputError `FILE:LINE: ...`
DiscoveredFabric read_infiniband_fabric(const std::string& text, const std::string& file);

/// The fabric of Slurm's `topology.conf` or `topology.yaml` (plugin topology/tree): switches with their nodes
/// or lower switches. Blocks of the plugin topology/block count as leaves. The file names no rates, and for
/// each switch only one of the switches above it, so that tapers and the number of cables are not known.
/// @throws InputError `FILE:LINE: ...`
DiscoveredFabric read_slurm_topology(const std::string& text, const std::string& file);

/// The names of a host list such as "gpu[01-03,7],login". @throws InputError with `place` in front
std::vector<std::string> host_list(const std::string& text, const std::string& place);

/// The content of a platform file that is to be written: what tools print, or what the user of `stepcast
/// init` says.
struct DiscoveredPlatform {
  std::string name, device;  ///< the platform's name; the device as the file has to name it
  int nodes = 1;             ///< used if there is no fabric
  std::optional<DiscoveredServer> server;
  std::optional<DiscoveredFabric> fabric;
  std::string nic = {}, nvlink = {};  ///< rates that the user gave, such as "200 Gbit/s"; empty: as found
};

/// `found` with the rate of PCIe links, which only `lstopo` prints.
DiscoveredServer with_hwloc(DiscoveredServer found, const DiscoveredServer& hwloc);

/// Sentences about what the tools do not say, what the readers simplify, and what the file leaves out.
std::vector<std::string> platform_doubts(const DiscoveredPlatform& platform);

/// The platform file (docs/reference/platforms.md). The source of each figure is the tool or
/// "assumed"; the doubts are comments. @param device  the one that the platform names
std::string platform_file_text(const DiscoveredPlatform& platform, const Device& device);

/// The inside of a server from the XML that `lstopo FILE.xml` writes, read by hwloc: GPUs, InfiniBand and
/// RoCE NICs, their sockets, PCIe switches and the rates of their PCIe links. hwloc knows of no NVLinks.
/// @throws InputError if hwloc cannot read the file
DiscoveredServer read_hwloc_topology(const std::string& text, const std::string& file);

}  // namespace stepcast
