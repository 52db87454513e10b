#include "strategies/nccl/collective_time.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

using namespace stepcast;

namespace {

/// Nodes of eight A100 on an NVSwitch, with as many NICs as `nics` says.
Platform a100(const std::string& version, int nics = 8) {
  const std::string text =
      "name: a\nsource: a test\ndevice: a100-40gb\nnodes: 4\nmax_nodes: 64\n"
      "node:\n  kind: switch\n  devices: 8\n  sockets: 2\n  devices_per_pcie_switch: 2\n"
      "  device_link: {bandwidth: 24 GB/s, latency: 0 us}\n"
      "  pcie_switch_link: {bandwidth: 24 GB/s, latency: 0.5 us}\n"
      "  inter_socket_link: {bandwidth: 16 GB/s, latency: 0 us}\n"
      "  memory: {bandwidth: 150 GB/s, latency: 0 us}\n"
      "  peer_link: {bandwidth: 240 GB/s, latency: 0.2 us}\n"
      "network:\n  kind: switch\n  nics: " +
      std::to_string(nics) +
      "\n  nics_on: pcie_switch\n  bandwidth: 24 GB/s\n  latency: 1 us\n"
      "messages:\n  between_nodes: [{overhead: 0 us, bandwidth_factor: 1}]\n"
      "  inside_node: [{overhead: 0 us, bandwidth_factor: 1}]\n"
      "software: {nccl: \"" +
      version + "\"}\n";
  const YamlNode root = parse_yaml(text, "a.yaml");
  Device device;
  device.compute_capability = 8.0;
  return read_platform(YamlValue(root, ""), device);
}

NcclRanks whole_nodes(const Platform& platform, int nodes) {
  NcclRanks group;
  group.nodes = nodes;
  group.devices.resize(platform.devices_per_node);
  std::iota(group.devices.begin(), group.devices.end(), 0);
  return group;
}

NcclTime all_reduce(const Platform& platform, const NcclRanks& group, double bytes) {
  return nccl_time(platform.software, nccl_channels(platform, group), NcclOperation::all_reduce, {bytes});
}

double bus_bandwidth(const Platform& platform, const NcclRanks& group, double bytes) {
  return bus_factor(NcclOperation::all_reduce, group.ranks()) * bytes /
         all_reduce(platform, group, bytes).time.value;
}

constexpr double kLarge = 8.0 * (1 << 30);
constexpr double kLaunch = 6e-6;

}  // namespace

TEST_CASE("further kernels of one process take 3.7 us each, and 5 us before 2.9, if the operation is shorter",
          "[nccl]") {
  for (const auto& [version, further] : {std::pair("2.8", 5e-6), std::pair("2.9", 3.7e-6)}) {
    Platform platform = a100(version);
    const double alone = all_reduce(platform, whole_nodes(platform, 1), kLarge).time.value;
    platform.software.one_process = true;
    CHECK(all_reduce(platform, whole_nodes(platform, 1), 8).time.value == Approx(kLaunch + 7 * further));
    CHECK(all_reduce(platform, whole_nodes(platform, 1), kLarge).time.value == Approx(alone));
  }
}

TEST_CASE("a small all-reduce takes LL's latencies: base + 14 hops of a ring of eight", "[nccl]") {
  const Platform platform = a100("2.9");
  const NcclTime time = all_reduce(platform, whole_nodes(platform, 1), 8);
  CHECK(time.algorithm == NcclAlgorithm::ring);
  CHECK(time.protocol == NcclProtocol::ll);
  CHECK(time.time.value == Approx(kLaunch + (3.6 + 14 * 0.47) * 1e-6).epsilon(1e-3));
}

TEST_CASE("between nodes a small all-reduce takes a tree: 2 (7 hops + log2 n crossings)", "[nccl]") {
  const Platform platform = a100("2.9");
  const NcclTime time = all_reduce(platform, whole_nodes(platform, 4), 8);
  CHECK(time.algorithm == NcclAlgorithm::tree);
  CHECK(time.time.value == Approx(kLaunch + (4.4 + 2 * (7 * 0.52 * 1.8 + 2 * 5)) * 1e-6).epsilon(1e-3));
}

TEST_CASE("a large all-reduce reaches the NVSwitch's port inside a node and the NICs between nodes",
          "[nccl]") {
  // NCCL's tuning limits all channels of A100 to 235 GB/s until 2.17.
  for (const auto& [version, port] :
       {std::pair("2.7", 235e9), std::pair("2.12", 235e9), std::pair("2.22", 240e9)}) {
    const Platform platform = a100(version);
    CHECK(bus_bandwidth(platform, whole_nodes(platform, 1), kLarge) == Approx(port).epsilon(0.01));
    CHECK(bus_bandwidth(platform, whole_nodes(platform, 4), kLarge) == Approx(192e9).epsilon(0.02));
  }
}

TEST_CASE("limits of channels are those of the version", "[nccl]") {
  const auto ll128 = [](int version, int capability, NcclOperation operation) {
    return nccl_limits(version, capability).ring_ll128.at(static_cast<std::size_t>(operation));
  };
  CHECK(ll128(208, 70, NcclOperation::all_reduce) == 16.9);
  CHECK(ll128(208, 70, NcclOperation::reduce) == 12);
  CHECK(ll128(212, 70, NcclOperation::reduce) == 20);
  CHECK(nccl_limits(207, 80).all_trees_ll128[2] == 105);
  CHECK(nccl_limits(206, 70).all_trees[0] == 110);
  CHECK(std::isinf(nccl_limits(208, 70).all_trees[0]));
  CHECK(nccl_tuning(206).ring_base[1] == 3.6);  // as in 2.5
  CHECK(nccl_tuning(207).tree_network[2] == 50);
  CHECK(nccl_tree_correction(208, NcclProtocol::ll128, 16 << 20) == 0.8);
  CHECK(nccl_tree_correction(212, NcclProtocol::ll128, 16 << 20) == 0.9);
}

TEST_CASE("a larger buffer and more nodes take longer", "[nccl]") {
  for (const char* version : {"2.3", "2.4", "2.8", "2.18", "2.28"}) {
    const Platform platform = a100(version);
    for (const int nodes : {1, 2, 4, 16}) {
      double before = 0;
      for (double bytes = 64; bytes <= kLarge; bytes *= 2) {
        const double seconds = all_reduce(platform, whole_nodes(platform, nodes), bytes).time.value;
        CHECK(seconds >= before);
        before = seconds;
        if (nodes > 2)  // between two nodes a tree needs half of the traffic
          CHECK(seconds > all_reduce(platform, whole_nodes(platform, 1), bytes).time.value);
      }
    }
  }
}

TEST_CASE("versions have what their release notes say: trees from 2.4, LL128 from 2.5 on", "[nccl]") {
  const auto used = [](const std::string& version, auto uses) {
    const Platform platform = a100(version);
    for (double bytes = 8; bytes <= kLarge; bytes *= 2) {
      for (const int nodes : {1, 4}) {
        if (uses(all_reduce(platform, whole_nodes(platform, nodes), bytes))) return true;
      }
    }
    return false;
  };
  const auto tree = [](const NcclTime& time) { return time.algorithm == NcclAlgorithm::tree; };
  const auto ll128 = [](const NcclTime& time) { return time.protocol == NcclProtocol::ll128; };
  CHECK_FALSE(used("2.3", tree));
  CHECK(used("2.4", tree));
  CHECK_FALSE(used("2.4", ll128));
  CHECK(used("2.5", ll128));
}

TEST_CASE("communicators side by side share the NICs", "[nccl]") {
  const Platform platform = a100("2.12");
  NcclRanks group = whole_nodes(platform, 4);
  const double alone = bus_bandwidth(platform, group, kLarge);
  group.side_by_side = 2;
  CHECK(bus_bandwidth(platform, group, kLarge) == Approx(alone / 2).epsilon(0.02));
  NcclRanks one_device{4, {3}, 8};  // data parallelism of eight shards: each device has its own NIC
  CHECK(nccl_channels(platform, one_device).network.value == Approx(24e9));
}

TEST_CASE("before PXN, rings are slow whose devices have no other one beside their NIC", "[nccl]") {
  const std::vector<int> every_fourth{0, 4}, every_second{0, 2, 4, 6}, pairs{0, 1, 4, 5}, one{0};
  for (const int nics : {4, 8}) {
    const Platform old = a100("2.7", nics), with_pxn = a100("2.12", nics);
    const auto rate = [](const Platform& platform, const std::vector<int>& devices) {
      return bus_bandwidth(platform, {8, devices, 8 / static_cast<int>(devices.size())}, kLarge);
    };
    CHECK(rate(old, every_fourth) < 0.25 * rate(with_pxn, every_fourth));
    CHECK(rate(old, every_second) < 0.25 * rate(with_pxn, every_second));
    CHECK(rate(old, pairs) > 0.9 * rate(with_pxn, pairs));
    CHECK(rate(old, one) > 0.9 * rate(with_pxn, one));
  }
}

TEST_CASE("staging in host memory lowers the rate of NICs to what is given", "[nccl]") {
  Platform platform = a100("2.12", 1);
  platform.software.gpudirect = false;
  platform.software.staging = {5e9};
  CHECK(nccl_channels(platform, whole_nodes(platform, 4)).network.value == Approx(5e9));
  CHECK(bus_bandwidth(platform, whole_nodes(platform, 4), kLarge) == Approx(5e9).epsilon(0.02));
  platform.software.staging = {0};
  CHECK(nccl_channels(platform, whole_nodes(platform, 4)).network.value == Approx(0.75 * 24e9));
}

TEST_CASE("a ring over PCIe crosses sockets both ways, which a half-duplex link shares", "[nccl]") {
  Platform platform = a100("2.4");
  platform.node.kind = NodeShape::Kind::pcie;
  CHECK(nccl_channels(platform, whole_nodes(platform, 1)).rings.value == Approx(0.93 * 16e9));
  platform.node.half_duplex_sockets = true;
  CHECK(nccl_channels(platform, whole_nodes(platform, 1)).rings.value == Approx(0.93 * 8e9));
}

TEST_CASE(
    "without peer access a ring moves 40 % of a device's link both ways, and devices of a switch share 67 % "
    "of "
    "its link",
    "[nccl]") {
  Platform platform = a100("2.8");
  platform.node.kind = NodeShape::Kind::pcie;
  platform.node.peer_access = false;
  platform.node.staging = {1e9};  // not given: it is the rate of other copies
  const auto rate = [&](std::vector<int> devices) {
    return nccl_channels(platform, {1, std::move(devices), 1}).rings.value;
  };
  CHECK(rate({0, 1}) == Approx(0.67 * 12e9));
  CHECK(rate({0, 2}) == Approx(0.40 * 24e9));
  CHECK(rate({0, 1, 2}) == Approx(0.67 * 12e9));
  CHECK(rate({0, 1, 2, 3, 4, 5, 6, 7}) == Approx(0.67 * 12e9));
  platform.node.inter_socket.bandwidth = {4e9};
  CHECK(rate({0, 4}) == Approx(0.93 * 4e9));
  platform.node.devices_per_pcie_switch = 0;
  CHECK(rate({0, 1}) == Approx(0.40 * 24e9));
}

TEST_CASE("without p2p, NCCL passes NVLinks and NVSwitches by", "[nccl]") {
  Platform platform = a100("2.8");
  CHECK(nccl_channels(platform, whole_nodes(platform, 1)).nvlink);
  platform.software.peer_to_peer = false;
  const NcclChannels channels = nccl_channels(platform, whole_nodes(platform, 1));
  CHECK_FALSE(channels.nvlink);
  CHECK(channels.rings.value == Approx(0.67 * 12e9));
}

TEST_CASE("without peer access all devices of a ring over PCIe share the rate of the host's memory, if given",
          "[nccl]") {
  Platform platform = a100("2.8");
  platform.node.kind = NodeShape::Kind::pcie;
  platform.node.peer_access = false;
  platform.node.staging = {16e9};
  platform.node.staging_given = true;
  CHECK(nccl_channels(platform, whole_nodes(platform, 1)).rings.value == Approx(0.93 * 2e9));
  CHECK(nccl_channels(platform, {1, {0, 1}, 1}).rings.value == Approx(0.93 * 8e9));
  CHECK(nccl_channels(platform, {1, {0, 1}, 4}).rings.value == Approx(0.93 * 2e9));
}

TEST_CASE("sockets reach what the host threads of the version move", "[nccl]") {
  const auto rate = [](const std::string& version, int threads) {
    Platform platform = a100(version, 1);
    platform.software.transport = Software::Transport::sockets;
    platform.software.gpudirect = false;
    platform.software.socket_threads = threads;
    return nccl_channels(platform, whole_nodes(platform, 4)).network.value;
  };
  CHECK(rate("2.3.7", 0) == Approx(2.06e9));
  CHECK(rate("2.4.2", 0) == Approx(1.85e9));
  CHECK(rate("2.8", 1) == Approx(2 * 2.06e9));
  CHECK(rate("2.8", 4) == Approx(8 * 2.06e9));
  CHECK(rate("2.8", 16) == Approx(0.75 * 24e9));  // then the copies to the host are slower
}

TEST_CASE("all-gather and reduce-scatter take half of an all-reduce, and one rank nothing", "[nccl]") {
  const Platform platform = a100("2.12");
  const NcclChannels channels = nccl_channels(platform, whole_nodes(platform, 1));
  const auto seconds = [&](NcclOperation operation) {
    return nccl_time(platform.software, channels, operation, {kLarge}).time.value;
  };
  CHECK(seconds(NcclOperation::all_gather) == Approx(seconds(NcclOperation::all_reduce) / 2).epsilon(0.01));
  CHECK(seconds(NcclOperation::reduce_scatter) == Approx(seconds(NcclOperation::all_gather)));
  const NcclRanks one{1, {0}, 1};
  CHECK(nccl_time(platform.software, nccl_channels(platform, one), NcclOperation::all_reduce, {1e9})
            .time.value == 0);
  CHECK_THROWS_AS(nccl_channels(platform, {1, {}, 1}), std::invalid_argument);
}

TEST_CASE("a ring with Simple takes the plateau factor times its latency, also inside a node", "[nccl]") {
  // Ampere's factor is 1.9 in 2.12; seven hops of 3.4 us, 8.4 us for the ring, 235 GB/s for all channels.
  const Platform platform = a100("2.12");
  const NcclChannels channels = nccl_channels(platform, whole_nodes(platform, 1));
  for (const NcclOperation operation : {NcclOperation::all_gather, NcclOperation::reduce_scatter}) {
    const NcclTime time = nccl_time(platform.software, channels, operation, {kLarge});
    CHECK(time.protocol == NcclProtocol::simple);
    CHECK(time.time.value ==
          Approx(kLaunch + 1.9 * (8.4 + 7 * 3.4) * 1e-6 + kLarge / 235e9 * 7 / 8).epsilon(1e-12));
  }
}

TEST_CASE("inside a node the plateau does not change NCCL's choice", "[nccl]") {
  // Without the plateau Simple's latency is 56 us and LL128's 36.6 us; LL128 has 92 % of the bandwidth.
  const Platform platform = a100("2.12");
  const double crossing = (56 - 36.6) * 1e-6 / (14 / 8.0 / 235e9 * (1 / 0.92 - 1));
  const auto at = [&](double bytes) { return all_reduce(platform, whole_nodes(platform, 1), bytes); };
  CHECK(at(0.99 * crossing).protocol == NcclProtocol::ll128);
  CHECK(at(1.01 * crossing).protocol == NcclProtocol::simple);
  CHECK(at(1.01 * crossing).time.value - at(0.99 * crossing).time.value > 0.5 * 56e-6);
}

TEST_CASE("an all-to-all takes Simple's latency for each peer once a message fills a chunk of 512 KiB",
          "[nccl]") {
  const Platform platform = a100("2.12");
  const NcclChannels channels = nccl_channels(platform, whole_nodes(platform, 1));
  const auto latency = [&](double message) {
    const Bytes size{8 * message};
    return nccl_time(platform.software, channels, NcclOperation::all_to_all, size).time.value -
           7 * message / (0.81 * 240e9);
  };
  const double peers = 7 * 3.4e-6, start = kLaunch + 5e-6;
  CHECK(latency(1 << 18) == Approx(start + peers / 2));
  CHECK(latency(1 << 19) == Approx(start + peers));
  CHECK(latency(1 << 24) == Approx(start + peers));
}

TEST_CASE("parts of a reduce-scatter that begin at no multiple of 16 bytes take longer, if the size says so",
          "[nccl]") {
  const Platform platform = a100("2.4");
  const NcclRanks group{1, {0, 1, 2, 3, 4, 5}, 1};
  const NcclChannels channels = nccl_channels(platform, group);
  const auto seconds = [&](NcclOperation operation, double part, RankParts parts) {
    return nccl_time(platform.software, channels, operation, {6 * part}, parts).time.value;
  };
  const double part = 1 << 28;
  const double aligned = seconds(NcclOperation::reduce_scatter, part, RankParts::by_size);
  CHECK(aligned == seconds(NcclOperation::reduce_scatter, part, RankParts::aligned));
  // Of 6 parts, 3 begin between multiples of 16 bytes if parts are 8 bytes longer, and 4 if they are 4
  // longer.
  const auto extra = [&](double more) {
    return seconds(NcclOperation::reduce_scatter, part + more, RankParts::by_size) /
               seconds(NcclOperation::reduce_scatter, part + more, RankParts::aligned) -
           1;
  };
  CHECK(extra(8) == Approx(3 / 6.0 * (1 / 0.32 - 1)).epsilon(0.01));
  CHECK(extra(4) == Approx(4 / 6.0 * (1 / 0.32 - 1)).epsilon(0.01));
  CHECK(seconds(NcclOperation::all_gather, part + 4, RankParts::by_size) ==
        seconds(NcclOperation::all_gather, part + 4, RankParts::aligned));
}

TEST_CASE("bus bandwidth counts as in nccl-tests", "[nccl]") {
  CHECK(bus_factor(NcclOperation::all_reduce, 8) == 1.75);
  CHECK(bus_factor(NcclOperation::all_gather, 8) == 0.875);
  CHECK(bus_factor(NcclOperation::send_receive, 8) == 1);
  CHECK(nccl_operation_names().size() == 7);
}

TEST_CASE("bus bandwidth over algorithm bandwidth says the number of ranks", "[nccl]") {
  CHECK(ranks_of_bandwidths(NcclOperation::all_reduce, 67.40, 123.56) == 12);
  CHECK(ranks_of_bandwidths(NcclOperation::all_reduce, 80.5, 80.5) == 2);
  CHECK(ranks_of_bandwidths(NcclOperation::all_gather, 328.05, 307.54) == 16);
  CHECK(ranks_of_bandwidths(NcclOperation::all_reduce, 0.02, 0.03) == 0);  // rounded too far
  CHECK(ranks_of_bandwidths(NcclOperation::broadcast, 80, 80) == 0);       // alike for all ranks
  CHECK(ranks_of_bandwidths(NcclOperation::all_reduce, 0, 0) == 0);
}

TEST_CASE("trees: false leaves rings only, as NCCL_ALGO=Ring", "[nccl]") {
  Platform platform = a100("2.18");
  platform.software.compute_capability = 90;
  platform.software.nvls = true;
  for (const int nodes : {1, 2}) {
    const NcclRanks group = whole_nodes(platform, nodes);
    platform.software.trees = true;
    CHECK(all_reduce(platform, group, kLarge).algorithm ==
          (nodes == 1 ? NcclAlgorithm::nvls : NcclAlgorithm::nvls_tree));
    platform.software.trees = false;
    CHECK(all_reduce(platform, group, kLarge).algorithm == NcclAlgorithm::ring);
  }
}

TEST_CASE("an all-reduce of many NICs between nodes is not faster than in one of its nodes", "[nccl]") {
  Platform platform = a100("2.25", 32);  // 768 GB/s in all at a switch that adds 178 GB/s
  platform.software.compute_capability = 100;
  platform.software.nvls = true;
  const double alone = all_reduce(platform, whole_nodes(platform, 1), kLarge).time.value;
  for (const int nodes : {2, 4}) {
    const NcclTime time = all_reduce(platform, whole_nodes(platform, nodes), kLarge);
    CHECK(time.algorithm == NcclAlgorithm::nvls_tree);
    CHECK(time.time.value > alone);
  }
}
