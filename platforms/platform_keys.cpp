#include "platforms/platform_keys.hpp"

namespace stepcast {
namespace {

constexpr auto kLinks = "links";
constexpr auto kDragonfly = "dragonfly";

Keys sourced(Keys keys) {
  return with_sources(std::move(keys), Key::Source::may);
}

Key source_key() {
  return {"source", "text", "", "none", "source of plain figures"};
}

Key link_key(std::string_view name, std::string_view meaning, std::string_view default_value = "required") {
  return {name, "mapping", "", default_value, meaning, link_keys};
}

Keys dragonfly_keys() {
  return sourced({{"routers_per_chassis", "integer", "1 to 64", "required",
                   "routers of a chassis, each two of which a chassis cable connects; 16 on Aries"},
                  {"chassis_per_group", "integer", "1 to 64", "required",
                   "chassis of a group; group cables connect the routers that are in the same slot of "
                   "different chassis; 6 on Aries"},
                  {"groups", "integer", "1 to 512", "required", "groups of chassis"},
                  {"cables_per_group_pair", "integer", "1 to 1024", "required",
                   "global cables between each two groups, assigned to the routers in turn"},
                  link_key("chassis_cable", "cable inside a chassis (green on Aries)"),
                  link_key("group_cable", "cable inside a group (black on Aries)"),
                  link_key("global_cable", "cable between groups (blue on Aries)"),
                  {"routing", "name", "minimal, valiant, adaptive", "required", "the route of a message"}});
}

}  // namespace

const Keys& sourced_keys() {
  static const Keys keys{{"value", "value", "", "required", "the value"},
                         {"source", "text", "", "none", "where the value comes from"}};
  return keys;
}

const Keys& link_keys() {
  static const Keys keys =
      sourced({{"bandwidth", "bandwidth", "> 0", "required", "effective bandwidth in each direction"},
               {"latency", "time", ">= 0", "required", "latency in one direction"},
               source_key()});
  return keys;
}

const Keys& node_keys() {
  static const Keys keys = sourced(joined_keys(
      {{{"kind", "name", "single, pcie, switch, links", "required",
         "how the devices of a node are connected"},
        {"devices", "integer", "1 to 256", "1", "devices of a node; 1 for `single`"},
        {"sockets", "integer", "1 to 16", "1",
         "sockets of a node; devices and NICs are distributed over them evenly, in order"},
        {"devices_per_pcie_switch", "integer", "0 to 256", "0",
         "consecutive devices that share a PCIe switch; 0: devices are connected to their socket"},
        link_key("device_link",
                 "from a device to its PCIe switch or socket: PCIe, NVLink to the CPU, or for a CPU core its "
                 "path to "
                 "memory"),
        {"device_link_duplex", "name", "full, half", "full",
         "`half`: both directions of a `device_link` share its bandwidth, for example if a core copies "
         "everything that it sends and receives"},
        link_key("pcie_switch_link", "from a PCIe switch to its socket", "required with PCIe switches"),
        link_key("inter_socket_link", "between each two sockets", "required with several sockets"),
        {"inter_socket_duplex", "name", "full, half", "full",
         "`half`: both directions of an `inter_socket_link` share its bandwidth, for example if copies "
         "between "
         "GPUs without peer access are staged in host memory"},
        link_key("memory", "from a socket to the host's memory"),
        source_key()},
       only_with("pcie, switch, links",
                 {{"peer_access", "boolean", "", "`false` for GeForce",
                   "whether devices without a `peer_link` reach each other's memory; `false`: copies pass "
                   "through host memory"},
                  {"staging", "bandwidth", "> 0", "14 GB/s",
                   "rate of all such copies of a node; only with `peer_access: false`"}}),
       only_with("switch, links",
                 {link_key("peer_link", "`switch`: a device's port at the NVSwitch; `links`: one NVLink")}),
       only_with(kLinks,
                 {{"peers", "list of lists", "", "required",
                   "linked pairs of devices, `[a, b]` or `[a, b, cables]`, at most 1,024; the "
                   "bandwidths of up to 64 "
                   "parallel cables add up"},
                  {"relay", "name", "host, devices", "host",
                   "`devices`: traffic may pass through a third device; `host`: only through the host"}})}));
  return keys;
}

const Keys& level_keys() {
  static const Keys keys = sourced(
      {{"down", "integer", "1 to 4096", "required",
        "ports down of a switch: to NICs at the leaves, to switches of the level below at all other levels"},
       {"up", "integer", "1 to 4096", "round(down / taper)", "cables up, each to a different switch"},
       {"taper", "number", "1 to 4096", "required",
        "bandwidth of all down ports divided by the bandwidth of all up cables; it sets the exact bandwidth "
        "of an up cable"},
       {"latency", "time", ">= 0", "required", "latency that each cable adds"},
       source_key()});
  return keys;
}

const Keys& network_keys() {
  static const Keys keys = joined_keys(
      {sourced({{"kind", "name", "switch, fat_tree, dragonfly, torus, sites", "required", "the fabric"},
                {"nics", "integer", "1 to 64", "1",
                 "NICs of a node; device i of D uses NIC i x nics / D, and a host uses the NIC of the device "
                 "with which it communicates"},
                {"nics_on", "name", "socket, pcie_switch", "socket",
                 "where NICs are connected; `pcie_switch` needs `devices_per_pcie_switch`"},
                {"striped", "boolean", "", "false",
                 "every message is spread over all NICs, which act as one NIC of nics x bandwidth that every "
                 "socket "
                 "reaches"},
                {"bandwidth", "bandwidth", "> 0", "required", "effective bandwidth of one NIC"},
                {"latency", "time", ">= 0", "required",
                 "latency in one direction between two nodes on one switch; each NIC adds half of it"},
                source_key()}),
       only_with("fat_tree",
                 {{"levels", "list of mappings", "", "required",
                   "levels from the leaves up, without the top; at most 7 levels with at most 2^24 ports",
                   level_keys},
                  {"rails", "boolean", "", "false",
                   "whether the NICs k of `down` neighbouring nodes share a leaf"}}),
       only_with("dragonfly, torus", sourced({{"nodes_per_router", "integer", "1 to 64", "required",
                                               "nodes of a router; 4 on Aries"}})),
       only_with(kDragonfly, dragonfly_keys()),
       only_with("torus",
                 {{"routers", "list of integers", "1 to 256", "required", "size of the torus, `[x, y, z]`"},
                  link_key("x_cable", "cable along x"),
                  link_key("y_cable", "cable along y"),
                  link_key("z_cable", "cable along z")}),
       only_with("sites", sourced({{"sites", "integer", "2 to 1024", "required",
                                    "sites; each is one switch with an equal share of the nodes"},
                                   link_key("wan", "link between each two sites")}))});
  return keys;
}

const Keys& storage_keys() {
  static const Keys keys = sourced(joined_keys(
      {{{"kind", "name", "shared, local", "required",
         "`shared`: one file system; `local`: a disk in each node, on its first socket"},
        {"bandwidth", "bandwidth", "> 0", "required",
         "bandwidth of all servers together in each direction, or of one local disk"},
        {"latency", "time", ">= 0", "required", "latency of one request"},
        source_key()},
       only_with("shared",
                 {{"into_cluster", "bandwidth", "> 0", "none",
                   "bandwidth of a narrower path between the servers and the cluster"},
                  {"per_node", "bandwidth", "> 0", "required", "bandwidth with which one node can read"}})}));
  return keys;
}

const Keys& message_row_keys() {
  static const Keys keys =
      sourced({{"up_to", "bytes", ">= 0", "no limit (last row)", "largest message of this row"},
               {"overhead", "time", ">= 0", "required", "fixed time of a message"},
               {"bandwidth_factor", "number", "1e-6 to 1", "required",
                "share of the route's bandwidth that a message reaches"},
               source_key()});
  return keys;
}

const Keys& messages_keys() {
  static const Keys keys{
      {"between_nodes", "list of mappings", "", "required",
       "cost of messages between nodes, in rows of growing size", message_row_keys},
      {"inside_node", "list of mappings", "", "required",
       "cost of messages inside a node, in rows of growing size", message_row_keys},
      {"programs_inside_node", "list of mappings", "", "`inside_node`",
       "cost of messages inside a node to and from servers and between pipeline stages", message_row_keys}};
  return keys;
}

const Keys& software_keys() {
  static const Keys keys = joined_keys(
      {{{"nccl", "text", "", "required unless `rccl` is given",
         "version in quotes, from \"2.0\" on; a patch level matters only with `sockets`: \"2.4.8\""},
        {"rccl", "text", "", "none",
         "in place of `nccl`, on AMD's GPUs: RCCL by its version, with NCCL's rules and its constants of "
         "Ampere"},
        {"compute_capability", "number", "3 to 20", "by the device's name",
         "CUDA compute capability of the devices, such as 7.0"},
        {"transport", "name", "verbs, sockets, plugin", "verbs", "what carries messages between nodes"},
        {"cpu", "name", "intel, amd, other", "intel", "processor; some of NCCL's constants depend on it"},
        {"gpudirect", "boolean", "", "`true` with `verbs` and NICs on PCIe switches",
         "whether NICs reach the devices' memory; otherwise data is staged in host memory"}},
       sourced({{"staging", "bandwidth", "> 0", "3/4 of `device_link` for each NIC",
                 "rate at which a node stages data in host memory, in each direction; only with `gpudirect: "
                 "false`"}}),
       {{"socket_threads", "integer", "1 to 16", "1",
         "host threads of each connection (`NCCL_SOCKET_NTHREADS`); only with `transport: sockets`, from "
         "2.4.8 on"},
        {"nvls", "boolean", "", "`true` from Hopper and 2.17 on", "NVLink SHARP: the NVSwitch computes sums"},
        {"trees", "boolean", "", "true", "`false`: rings only (`NCCL_ALGO=Ring`)"},
        {"processes", "name", "one_a_device, one_a_node", "one_a_device",
         "whether one process launches the kernels of all devices of a node"},
        source_key()}});
  return keys;
}

const Keys& platform_keys() {
  static const Keys keys = joined_keys(
      {{{"name", "text", "", "required", "name of the platform"},
        {"source", "text", "", "required", "what the description is based on"},
        {"device", "name or path", "", "required",
         "device of a worker: a name in `models/devices/`, or a file that ends in `.yaml`, relative to this "
         "file"}},
       sourced(
           {{"nodes", "integer", ">= 1", "required", "nodes in use, at most `max_nodes`"},
            {"max_nodes", "integer", ">= 1", "required",
             "nodes of the real machine; at most as many as fit on the network, with at most 2^20 devices"},
            {"price_per_device_hour", "number", ">= 0", "none",
             "price in US dollars; adds the column `cost_usd`"}}),
       {{"node", "mapping", "", "required", "the inside of a node", node_keys},
        {"network", "mapping", "", "required", "the network between nodes", network_keys},
        {"messages", "mapping", "", "required", "cost that the software adds to each message", messages_keys},
        {"storage", "mapping", "", "none", "file system or local disks", storage_keys},
        {"software", "mapping", "", "none", "the communication library, NCCL or RCCL", software_keys}}});
  return keys;
}

}  // namespace stepcast
