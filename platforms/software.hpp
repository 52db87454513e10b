#pragma once

#include <string>
#include <string_view>

#include "core/typed_numbers.hpp"
#include "core/yaml.hpp"
#include "models/cost/device.hpp"

namespace stepcast {

/// The communication library that a platform names with `software:`, and what it finds on the machine. Plain
/// data. Without `nccl` or `rccl`, collectives are simulated message by message as if no library were known.
struct Software {
  enum class Transport { verbs, sockets, plugin };  ///< between nodes
  enum class Cpu { intel, amd, other };
  enum class Library { nccl, rccl };  ///< RCCL is AMD's port, whose versions are those of the NCCL in it

  int nccl = 0;  ///< 100 x the major version + the minor one: 208 for 2.8; 0: none is named
  Library library = Library::nccl;
  int compute_capability = 0;  ///< 10 x CUDA's compute capability of the devices: 70 for a V100
  Transport transport = Transport::verbs;
  Cpu cpu = Cpu::intel;
  /// The NIC reads and writes the devices' memory (GPUDirect RDMA); otherwise data is staged in host memory.
  bool gpudirect = false;
  BytesPerSecond staging{0};  ///< rate of a node's staging through host memory, each way; 0: the links' rate
  /// Host threads that move the data of a connection over sockets (NCCL_SOCKET_NTHREADS); 0: the version,
  /// before 2.4.8, has none beside its proxy threads.
  int socket_threads = 0;
  bool peer_to_peer = true;  ///< false: NCCL_P2P_DISABLE=1, all data of a node passes through host memory
  bool nvls = false;         ///< the NVSwitch adds (NVLink SHARP)
  bool trees = true;         ///< false: NCCL_ALGO=Ring, or NCCL_TREE_THRESHOLD=0 in NCCL 2.4
  bool one_process = false;  ///< one process launches the kernels of all devices of a node, one by one
};

/// The library with its version, such as "NCCL 2.8".
std::string library_text(const Software& software);

/// Reads `software:` (docs/reference/platforms.md names the keys).
/// @param device       of the platform, which has the compute capability unless a key gives it
/// @param nic_nearby   NICs are connected to the devices' PCIe switches, so that GPUDirect is on by default
/// @throws InputError
Software read_software(const YamlValue& value, const Device& device, bool nic_nearby);

}  // namespace stepcast
