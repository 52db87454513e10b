#pragma once

#include <string>

#include "platforms/discovery/discovered.hpp"

namespace stepcast {

/// Reads what `nvidia-smi topo -m` prints: a matrix of GPUs and NICs whose cells name the path between two of
/// them (X, NV#, PIX, PXB, PHB, NODE, SYS, or SOC in old versions), and the NUMA domain of each GPU.
///
/// GPUs that PIX or PXB joins, directly or by a NIC, share a PCIe switch. If all pairs have the same number
/// of NVLinks, and a GPU cannot have as many to each of its peers, the links lead to NVSwitches.
/// @throws InputError `FILE:LINE: ...`
DiscoveredServer read_nvidia_topology(const std::string& text, const std::string& file);

}  // namespace stepcast
