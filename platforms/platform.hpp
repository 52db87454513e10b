#pragma once

#include <array>
#include <filesystem>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/typed_numbers.hpp"
#include "core/yaml.hpp"
#include "platforms/software.hpp"

namespace stepcast {

/// One direction of one cable, port or bus. A route pays each link's latency once.
struct Link {
  BytesPerSecond bandwidth;
  Seconds latency;
};

/// Software cost of a message of up to `up_to` bytes: a fixed time, and the share of the route's bandwidth
/// that the message reaches. Time = overhead + sum of latencies + bytes / (bandwidth_factor * least
/// bandwidth).
struct MessageCost {
  Bytes up_to;
  Seconds overhead;
  double bandwidth_factor = 1;
};

/// `count` cables side by side between two devices of a node.
struct PeerLink {
  int a = 0, b = 0, count = 1;
};

/// Inside of a node. Every device is connected to a PCIe switch or to its socket. `kind` gives the further
/// links between devices.
struct NodeShape {
  enum class Kind { single, pcie, nvswitch, links };

  Kind kind{};
  int sockets = 1;                  ///< devices and NICs are divided among the sockets evenly, in order
  int devices_per_pcie_switch = 0;  ///< 0: devices are connected to their socket
  Link device;               ///< device to its PCIe switch or socket: PCIe, NVLink to the CPU, or memory bus
  bool half_duplex = false;  ///< whether both directions of `device` share its bandwidth
  Link pcie_switch;          ///< PCIe switch to socket
  Link inter_socket;         ///< between every two sockets
  bool half_duplex_sockets = false;  ///< whether both directions of `inter_socket` share its bandwidth
  Link memory;                       ///< socket to host memory
  /// Devices that no link connects read and write each other's memory; otherwise each copy between them is
  /// written to a buffer in host memory and read from it.
  bool peer_access = true;
  BytesPerSecond staging{0};    ///< without peer access: rate of all such copies of a node together
  bool staging_given = false;   ///< whether the platform states `staging`, which then bounds NCCL's rings too
  Link peer;                    ///< kind links: one NVLink cable; kind nvswitch: the port of a device
  std::vector<PeerLink> peers;  ///< kind links: pairs of devices
  bool devices_relay = false;   ///< kind links: whether devices forward traffic of others
};

/// Level of a fat tree below its top.
struct FatTreeLevel {
  int down = 1;      ///< ports of a switch towards NICs or the level below
  double taper = 1;  ///< bandwidth of all down ports / bandwidth of all up ports
  int up = 1;        ///< ports of a switch towards the level above, each to a different switch
  Seconds latency;   ///< latency of a cable up and of the switch that it leads to
};

/// A fat tree; without levels, a single non-blocking switch.
struct FatTreeShape {
  std::vector<FatTreeLevel> levels;  ///< from the leaves up, without the top
  bool rails = false;                ///< NIC k of `down` neighbouring nodes share a leaf
};

/// Cray Aries: routers in chassis, chassis in groups, groups connected by global ("blue") cables.
struct DragonflyShape {
  enum class Routing { minimal, valiant, adaptive };

  int ports_per_router = 4, routers_per_chassis = 16, chassis_per_group = 6, groups = 1;
  int cables_per_group_pair = 1;
  Link chassis_cable;  ///< between two routers of a chassis (green, rank 1)
  Link group_cable;    ///< between routers of equal slot in two chassis of a group (black, rank 2)
  Link global_cable;   ///< between two groups (blue, rank 3)
  Routing routing = Routing::minimal;
};

/// Three-dimensional torus of routers.
struct TorusShape {
  std::array<int, 3> size{1, 1, 1};
  std::array<Link, 3> cable;  ///< cable of each dimension
  int ports_per_router = 2;
};

/// Equal sites of one switch each. Every two sites are connected by one wide-area link.
struct SitesShape {
  int count = 2;
  Link wan;
};

using FabricShape = std::variant<FatTreeShape, DragonflyShape, TorusShape, SitesShape>;

/// NICs of a node, and the network between nodes.
struct NetworkShape {
  int nics = 1;          ///< device i of D uses NIC i * nics / D
  bool striped = false;  ///< every message is spread over all NICs, which act as one of nics x bandwidth
  bool nic_on_pcie_switch = false;  ///< true: NICs are connected to PCIe switches; false: to sockets
  Link nic;                         ///< one NIC and its cable
  FabricShape fabric;

  int ports_per_node() const { return striped ? 1 : nics; }
  /// A port of the fabric: one NIC, or all NICs of a node if messages are striped.
  Link port() const { return striped ? Link{nics * nic.bandwidth, nic.latency} : nic; }
};

/// Storage of training data.
struct Storage {
  enum class Kind { none, shared, local };

  Kind kind = Kind::none;
  BytesPerSecond bandwidth;        ///< shared: all servers together; local: the disk of one node
  BytesPerSecond into_cluster{0};  ///< shared: a narrower link into the cluster; 0: none
  BytesPerSecond per_node;         ///< shared: read bandwidth of one node
  Seconds latency;
};

/// A cluster as described by `platforms/NAME.yaml`: equal nodes, a fabric and storage. Plain data.
///
/// Endpoints of routes are numbered: devices (node by node), then the host memory of each node, then the
/// storage.
struct Platform {
  std::string name, source, device_name;
  int nodes = 1;
  int max_nodes = 1;  ///< nodes that the real machine has
  int devices_per_node = 1;
  NodeShape node;
  NetworkShape network;
  Storage storage;
  /// Messages between nodes, sorted by size; the last `up_to` is infinite.
  std::vector<MessageCost> message_costs;
  std::vector<MessageCost> local_message_costs;  ///< messages inside a node, sorted in the same way
  /// Messages inside a node between programs, without those of collectives; empty: `local_message_costs`.
  std::vector<MessageCost> local_program_costs;
  double price_per_device_hour = 0;  ///< US dollars; 0: not given
  /// Peak and memory of the device, of which platform files have only the name.
  FlopsPerSecond device_peak{0};
  Bytes device_memory{0};
  Software software;  ///< the communication library; none by default
  /// Links that have failed (ids of Topology, ascending); routes lead around them. No platform file names
  /// any.
  std::vector<int> dead_links;

  /// Costs of messages between programs inside a node.
  const std::vector<MessageCost>& program_costs_in_node() const {
    return local_program_costs.empty() ? local_message_costs : local_program_costs;
  }
  int devices() const { return nodes * devices_per_node; }
  int endpoints() const { return devices() + nodes + 1; }
  int host_endpoint(int node_index) const { return devices() + node_index; }
  int storage_endpoint() const { return devices() + nodes; }
  bool has_adaptive_routes() const {
    const auto* dragonfly = std::get_if<DragonflyShape>(&network.fabric);
    return dragonfly != nullptr && dragonfly->routing == DragonflyShape::Routing::adaptive;
  }
  /// The node of a device or host; -1 for the storage.
  int node_of(int endpoint) const;
};

/// Reads `platforms/NAME.yaml` (docs/reference/platforms.md names the keys).
/// @param device  the one that the file names
/// @throws InputError
Platform read_platform(const YamlValue& value, const Device& device);

/// The cost of a message of this size. `costs` is not empty, and its last row has no upper end.
const MessageCost& message_cost(const std::vector<MessageCost>& costs, Bytes size);

}  // namespace stepcast
