#include <fcntl.h>
#include <fmt/format.h>
#include <hwloc.h>
#include <hwloc/distances.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <iterator>
#include <limits>
#include <map>
#include <memory>

#include "core/error.hpp"
#include "core/text.hpp"
#include "platforms/discovery/discovered.hpp"

namespace stepcast {
namespace {

using Topology = std::unique_ptr<hwloc_topology, decltype(&hwloc_topology_destroy)>;

/// The topology of the text; null if hwloc refuses it.
Topology loaded(const std::string& text) {
  hwloc_topology_t topology = nullptr;
  if (hwloc_topology_init(&topology) != 0) throw std::runtime_error("hwloc: no memory for a topology");
  Topology owned(topology, hwloc_topology_destroy);
  if (text.size() >= std::numeric_limits<int>::max() ||
      hwloc_topology_set_xmlbuffer(topology, text.c_str(), text.size() + 1) != 0 ||
      hwloc_topology_set_io_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_ALL) != 0 ||
      hwloc_topology_load(topology) != 0)
    owned.reset();
  return owned;
}

/// True if hwloc reads the text. On some damaged files an assertion of hwloc ends the program, so a process
/// of its own tries.
bool is_readable(const std::string& text) {
  constexpr unsigned int kLongest = 20;  // [s]
  const pid_t child = fork();
  if (child < 0) throw std::runtime_error("hwloc: no process to read the topology");
  if (child == 0) {
    for (const int ended_by : {SIGABRT, SIGSEGV, SIGFPE, SIGALRM}) std::signal(ended_by, SIG_DFL);
    alarm(kLongest);
    const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    dup2(nowhere, STDERR_FILENO);
    _exit(loaded(text) == nullptr ? 1 : 0);
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

Topology load(const std::string& text, const std::string& file) {
  if (text.find("<topology version=\"3") != std::string::npos)
    throw InputError(file + ":1: expected XML of hwloc 2, got version 3, which hwloc 2 does not read");
  Topology topology(nullptr, hwloc_topology_destroy);
  if (is_readable(text)) topology = loaded(text);
  if (topology == nullptr)
    throw InputError(file + ":1: expected the XML of a topology, as \"lstopo FILE.xml\" writes it");
  return topology;
}

/// True for an enumerator that hwloc read from the file: it accepts any number there, and reading one that is
/// not an enumerator's as such would be undefined.
template <typename Enum>
bool is(const Enum& from_file, Enum enumerator) {
  return std::memcmp(&from_file, &enumerator, sizeof(Enum)) == 0;
}

/// True if the tools of a GPU's vendor, which see only GPUs that compute, know the device: CUDA, NVML, ROCm
/// SMI or Level Zero.
bool has_compute_device(hwloc_obj_t device) {
  for (hwloc_obj_t one = device->io_first_child; one; one = one->next_sibling) {
    const std::string name = one->type == HWLOC_OBJ_OS_DEVICE && one->name ? one->name : "";
    for (const char* tool : {"cuda", "nvml", "rsmi", "ze"}) {
      if (name.starts_with(tool)) return true;
    }
  }
  return false;
}

/// True for a GPU that computes, false for the display of a management controller or a processor. NVIDIA's
/// displays all compute; AMD's and Intel's accelerators are no VGA controllers (class 0x0300).
bool is_gpu(hwloc_obj_t device) {
  constexpr int kNvidia = 0x10de, kAmd = 0x1002, kIntel = 0x8086, kVga = 0x0300;
  const auto& pci = device->attr->pcidev;
  const int base = pci.class_id >> 8;
  if (base != 0x03 && base != 0x12) return false;  // display controller, processing accelerator
  if (pci.vendor_id == kNvidia || has_compute_device(device)) return true;
  return (pci.vendor_id == kAmd || pci.vendor_id == kIntel) && pci.class_id != kVga;
}

/// True if the operating system has an RDMA device for this PCI device.
bool is_nic(hwloc_obj_t device) {
  for (hwloc_obj_t one = device->io_first_child; one; one = one->next_sibling) {
    if (one->type == HWLOC_OBJ_OS_DEVICE && is(one->attr->osdev.type, HWLOC_OBJ_OSDEV_OPENFABRICS))
      return true;
  }
  return false;
}

std::string name_of(hwloc_obj_t device) {
  for (hwloc_obj_t one = device->io_first_child; one; one = one->next_sibling) {
    if (one->type == HWLOC_OBJ_OS_DEVICE && !is(one->attr->osdev.type, HWLOC_OBJ_OSDEV_NETWORK) && one->name)
      return one->name;
  }
  return device->name ? device->name : "PCI device";
}

/// The bridge of the root complex through which a device is reached: devices with the same one share a PCIe
/// switch.
hwloc_obj_t root_port(hwloc_obj_t device) {
  hwloc_obj_t port = device;
  for (hwloc_obj_t one = device->parent; one && one->type == HWLOC_OBJ_BRIDGE; one = one->parent) {
    if (is(one->attr->bridge.upstream_type, HWLOC_OBJ_BRIDGE_PCI)) port = one;
  }
  return port;
}

/// The number of a GPU to which an object of the matrix of NVLinks belongs; -1: none.
int gpu_of(const std::vector<hwloc_obj_t>& gpus, hwloc_obj_t object) {
  for (hwloc_obj_t one = object; one; one = one->parent) {
    const auto found = std::ranges::find(gpus, one);
    if (found != gpus.end()) return found - gpus.begin();
  }
  return -1;
}

/// Number of NVLinks of a bandwidth [MB/s]: hwloc counts 20 GB/s for each link of a P100, which has four, and
/// 25 GB/s for later ones. 0: no such number. Source: hwloc, hwloc/topology-nvml.c.
int nvlinks_of(hwloc_uint64_t bandwidth) {
  const bool later = bandwidth % 25'000 == 0;
  if (!later && (bandwidth % 20'000 != 0 || bandwidth > 80'000)) return 0;
  return bandwidth / (later ? 25'000 : 20'000);
}

/// Adds the NVLinks of hwloc's matrix "NVLinkBandwidth", if the file has it. @return true if it has
bool add_nvlinks(hwloc_topology_t topology, const std::vector<hwloc_obj_t>& gpus, DiscoveredServer& server) {
  unsigned int matrices = 1;
  hwloc_distances_s* found = nullptr;
  if (hwloc_distances_get_by_name(topology, "NVLinkBandwidth", &matrices, &found, 0) != 0 || matrices == 0)
    return false;
  int to_switches = 0, elsewhere = 0;
  for (unsigned int i = 0; i < found->nbobjs; ++i) {
    const int a = gpu_of(gpus, found->objs[i]);
    for (unsigned int j = 0; j < found->nbobjs; ++j) {
      const int b = gpu_of(gpus, found->objs[j]);
      const hwloc_uint64_t bandwidth = found->values[i * found->nbobjs + j];
      if (i == j || a < 0 || bandwidth == 0) continue;
      const int links = nvlinks_of(bandwidth);
      if (links == 0) {
        ++elsewhere;
      } else if (b > a) {
        server.nvlinks.push_back({a, b, links});
      } else if (b < 0 && found->objs[j]->subtype && std::string(found->objs[j]->subtype) == "NVSwitch") {
        if (a == 0) to_switches += links;
      } else if (b < 0) {
        ++elsewhere;
      }
    }
  }
  hwloc_distances_release(topology, found);
  server.nvlinks_to_switch = to_switches;
  if (elsewhere > 0)
    server.doubts.push_back(fmt::format(
        "{} entries of NVLinkBandwidth lead from GPUs to no GPU or NVSwitch, or are no multiple of a "
        "link's rate; they are left out.",
        elsewhere));
  return true;
}

/// The rate of the GPUs' PCIe links: the fastest counts, as a GPU without work lowers the rate of its link.
void add_pcie_rate(const std::vector<hwloc_obj_t>& gpus, DiscoveredServer& server) {
  constexpr double kSlow = 7e9;  // less than 8 lanes of PCIe 3.0, which no server gives a GPU
  double least = 0, most = 0;
  for (hwloc_obj_t gpu : gpus) {
    const double rate = 1e9 * gpu->attr->pcidev.linkspeed;
    if (rate <= 0) continue;
    least = most == 0 ? rate : std::min(least, rate);
    most = std::max(most, rate);
  }
  if (most == 0) return;
  server.gpu_pcie = BytesPerSecond{most};
  if (least < 0.99 * most)
    server.doubts.push_back(fmt::format("PCIe links of GPUs have {:.3g} to {:.3g} GB/s; the fastest counts.",
                                        least / 1e9, most / 1e9));
  if (most < kSlow)
    server.doubts.push_back(fmt::format(
        "PCIe links of GPUs have {:.3g} GB/s, as if they were idle; run lstopo while the GPUs work.",
        most / 1e9));
}

/// The socket of a device, counted from 0; -1 if its PCIe belongs to the whole machine.
int socket_of(hwloc_topology_t topology, hwloc_obj_t device) {
  for (hwloc_obj_t one = hwloc_get_non_io_ancestor_obj(topology, device); one; one = one->parent) {
    if (one->type == HWLOC_OBJ_PACKAGE) return one->logical_index;
  }
  return -1;
}

/// What the first socket's processor says of itself.
std::optional<SocketLink> socket_link_of(hwloc_topology_t topology) {
  const hwloc_obj_t socket = hwloc_get_obj_by_type(topology, HWLOC_OBJ_PACKAGE, 0);
  const auto info = [&](const char* name) -> std::string {
    const char* text = socket ? hwloc_obj_get_info_by_name(socket, name) : nullptr;
    return text ? text : "";
  };
  const auto number = [&](const char* name) -> int {
    return parse_integer(info(name)).value_or(-1) % 100'000;
  };
  return nccl_socket_link(info("CPUVendor"), number("CPUFamilyNumber"), number("CPUModelNumber"),
                          info("CPUModel"));
}

}  // namespace

DiscoveredServer read_hwloc_topology(const std::string& text, const std::string& file) {
  const Topology topology = load(text, file);
  DiscoveredServer server;
  server.found_by = "lstopo (hwloc)";
  server.sockets = std::max(1, hwloc_get_nbobjs_by_type(topology.get(), HWLOC_OBJ_PACKAGE));

  std::map<hwloc_obj_t, int> members;
  std::vector<hwloc_obj_t> devices;
  for (hwloc_obj_t one = nullptr; (one = hwloc_get_next_pcidev(topology.get(), one));) {
    if (!is_gpu(one) && !is_nic(one)) continue;
    devices.push_back(one);
    ++members[root_port(one)];
  }
  std::map<hwloc_obj_t, int> switches;
  for (hwloc_obj_t one : devices) {
    const hwloc_obj_t port = root_port(one);
    int pcie_switch = -1;
    if (members[port] > 1) pcie_switch = switches.try_emplace(port, switches.size()).first->second;
    const int socket = socket_of(topology.get(), one);
    (is_gpu(one) ? server.gpus : server.nics).push_back({name_of(one), std::max(0, socket), pcie_switch});
  }
  server.socket_link = socket_link_of(topology.get());
  if (server.gpus.empty()) throw InputError(file + ":1: expected GPUs of NVIDIA, AMD or Intel, found none");
  std::vector<hwloc_obj_t> gpus;
  std::ranges::copy_if(devices, std::back_inserter(gpus), is_gpu);
  add_pcie_rate(gpus, server);
  const bool nvlinks = add_nvlinks(topology.get(), gpus, server);
  server.doubts.push_back(fmt::format("lstopo lists GPUs in PCI order, which may not be CUDA's{}.",
                                      nvlinks ? "" : "; this file says nothing about NVLinks"));
  return server;
}

}  // namespace stepcast
