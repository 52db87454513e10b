#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/units.hpp"
#include "platforms/platform.hpp"

namespace stepcast {

/// A GPU or NIC of a server, and where it is connected.
struct ServerDevice {
  std::string name;      ///< as the tool prints it
  int socket = 0;        ///< socket or NUMA domain, counted from 0
  int pcie_switch = -1;  ///< PCIe switch, counted from 0; -1: connected to its socket
};

/// The inside of a server as tools print it.
struct DiscoveredServer {
  std::string found_by;  ///< the command, such as "nvidia-smi topo -m"
  std::vector<ServerDevice> gpus, nics;
  int sockets = 1;
  std::vector<PeerLink> nvlinks;           ///< pairs of GPUs with direct NVLinks
  int nvlinks_to_switch = 0;               ///< NVLinks of each GPU to NVSwitches; 0: no NVSwitch
  std::optional<BytesPerSecond> gpu_pcie;  ///< nominal bandwidth of a GPU's PCIe link
  std::vector<std::string> doubts;  ///< sentences about what the tool does not say or the reader simplifies
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

}  // namespace stepcast
