#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>

#include "core/error.hpp"
#include "core/os/files.hpp"
#include "platforms/discovery/discovered.hpp"
#include "tests/platforms/built_platforms.hpp"

using namespace stepcast;

namespace {

std::string file(const std::string& name) {
  return read_file(STEPCAST_SOURCE_DIR "/tests/platforms/discovery/" + name);
}

/// The platform that the written file describes.
Platform written(const DiscoveredPlatform& platform) {
  const Device device = shipped_device(platform.device);
  const YamlNode root = parse_yaml_file(platform_file_text(platform, device), "written.yaml");
  return read_platform(YamlValue(root, ""), device);
}

DiscoveredPlatform with_fabric(DiscoveredServer server, DiscoveredFabric fabric) {
  return {"found", "v100-sxm2-16gb", 1, std::move(server), std::move(fabric)};
}

constexpr const char* kSlurm =
    "# leaves\nSwitchName=s0 Nodes=tux[0-15] LinkSpeed=10\nswitchname=s1 nodes=tux[16-31]\n"
    "SwitchName=s2 Nodes=tux[32-45]\nSwitchName=top Switches=s[0-2]\n";

}  // namespace

TEST_CASE("nvidia-smi's matrix gives the NVLinks, PCIe switches, sockets and NICs of a DGX-1",
          "[platforms]") {
  const Platform found =
      written({"found", "v100-sxm2-16gb", 4, read_nvidia_topology(file("dgx1.txt"), "f"), {}});
  CHECK(found.node.kind == NodeShape::Kind::links);
  CHECK(found.nodes == 4);
  CHECK(found.devices_per_node == 8);
  CHECK(found.node.sockets == 2);
  CHECK(found.node.devices_per_pcie_switch == 2);
  CHECK(found.network.nics == 4);
  CHECK(found.network.nic_on_pcie_switch);
  std::map<int, int> links;  // by device
  for (const PeerLink& one : found.node.peers) links[one.a] += one.count, links[one.b] += one.count;
  for (const auto& [device, count] : links) CHECK(count == 6);  // a V100 has six
  CHECK(links.size() == 8);
}

TEST_CASE("equal NVLinks to more GPUs than a GPU has links lead to NVSwitches", "[platforms]") {
  const DiscoveredServer server = read_nvidia_topology(file("nvswitch.txt"), "f");
  CHECK(server.nvlinks_to_switch == 12);
  CHECK(server.sockets == 4);  // NUMA domains of GPUs; the storage NICs' own does not count
  const Platform found = written({"found", "a100-40gb", 1, server, {}});
  CHECK(found.node.kind == NodeShape::Kind::nvswitch);
  CHECK(found.node.peer.bandwidth.value == Approx(240e9));
  CHECK(found.network.nics == 8);  // not the two for storage
}

TEST_CASE("a header that is underlined is read, also where its escape characters were lost", "[platforms]") {
  for (const std::string escape : {"\033", ""}) {
    const DiscoveredServer server =
        read_nvidia_topology("\t" + escape + "[4mGPU0\tGPU1\tCPU Affinity\tGPU NUMA ID" + escape +
                                 "[0m\nGPU0\t X \tNV18\t0-15\t\n"
                                 "GPU1\tNV18\t X \t0-15\t\n",
                             "f");
    CHECK(server.gpus.size() == 2);
  }
}

TEST_CASE("four A100 with four NVLinks to each other have no NVSwitch", "[platforms]") {
  const DiscoveredServer server = read_nvidia_topology(
      "    GPU0 GPU1 GPU2 GPU3 CPU Affinity NUMA Affinity\n"
      "GPU0 X NV4 NV4 NV4 48-63 3\nGPU1 NV4 X NV4 NV4 32-47 2\nGPU2 NV4 NV4 X NV4 16-31 1\nGPU3 NV4 NV4 NV4 "
      "X 0-15 0\n",
      "f");
  CHECK(server.nvlinks_to_switch == 0);
  CHECK(server.nvlinks.size() == 6);
  CHECK(server.sockets == 4);
}

TEST_CASE("a damaged matrix is refused with its line", "[platforms]") {
  const auto refused = [](const std::string& text, const std::string& message) {
    CHECK_THROWS_WITH(read_nvidia_topology(text, "f"), Catch::Contains(message));
  };
  refused("", "f:1: expected the table of nvidia-smi");
  refused("GPU0 GPU1 CPU\nGPU0 X NVX\n", "f:2: GPU0: expected NV#, PIX, PXB, PHB, NODE or SYS, got \"NVX\"");
  refused("GPU0 GPU1 CPU\nGPU0 X SYS\nGPU7 SYS X\n", "f:3: expected the row of GPU1, got \"GPU7\"");
  refused("GPU0 GPU1 CPU\nGPU0 X\n", "f:2: GPU0: expected 2 cells, got 1");
  refused("GPU0 GPU1 CPU\nGPU0 X SYS\n", "expected 2 rows, got 1");
}

TEST_CASE("lstopo's XML gives sockets, PCIe switches, NICs and the rate of PCIe links", "[platforms]") {
  const DiscoveredServer server = read_hwloc_topology(file("two-sockets.xml"), "f");
  CHECK(server.gpus.size() == 8);  // not the display of the management controller
  CHECK(server.gpus.front().name == "cuda0");
  CHECK(server.nics.size() == 4);
  CHECK(server.sockets == 2);
  CHECK(server.gpus.back().socket == 1);
  CHECK(server.gpus.back().pcie_switch == 3);
  CHECK(server.nics.back().pcie_switch == 3);
  const Platform found = written({"found", "v100-sxm2-16gb", 1, server, {}});
  CHECK(found.node.kind == NodeShape::Kind::pcie);
  CHECK(found.node.device.bandwidth.value == Approx(12e9).epsilon(0.01));
  CHECK_THROWS_WITH(read_hwloc_topology("<topology", "f"), Catch::StartsWith("f:1: expected the XML"));
  std::string damaged = file("two-sockets.xml");  // hwloc ends the program that reads this list of cores
  damaged.replace(damaged.find("allowed_cpuset=\"0x00000003\""), 27, "allowed_cpuset=\",x00000003\"");
  CHECK_THROWS_WITH(read_hwloc_topology(damaged, "f"), Catch::StartsWith("f:1: expected the XML"));
}

TEST_CASE("the fastest PCIe link of GPUs counts, and others or idle ones are named", "[platforms]") {
  const auto with_rates = [](const std::string& of_all_gpus, const std::string& of_last) {
    std::string text = file("two-sockets.xml");
    std::size_t at = 0, last = 0;
    for (; (at = text.find("[10de:1db5]", at)) != std::string::npos; ++at) {
      last = text.find("15.753846", at);
      if (last != std::string::npos) text.replace(last, 9, of_all_gpus);
    }
    text.replace(last, 9, of_last);
    return read_hwloc_topology(text, "f");
  };
  const DiscoveredServer mixed = with_rates("15.753846", "03.938462");
  CHECK(mixed.gpu_pcie->value == Approx(15.753846e9));
  CHECK(mixed.doubts.front() == "PCIe links of GPUs have 3.94 to 15.8 GB/s; the fastest counts.");
  const DiscoveredServer idle = with_rates("03.938462", "03.938462");
  CHECK(idle.gpu_pcie->value == Approx(3.938462e9));
  CHECK(idle.doubts.front() ==
        "PCIe links of GPUs have 3.94 GB/s, as if they were idle; run lstopo while the GPUs work.");
}

TEST_CASE("between sockets of PCIe servers both directions share what NCCL counts for the processor",
          "[platforms]") {
  const auto with_processor = [](const std::string& vendor, int family, int model) {
    std::string text = file("two-sockets.xml");
    const std::size_t package = text.find("<object type=\"NUMANode\"");
    return text.insert(package,
                       fmt::format("<info name=\"CPUVendor\" value=\"{}\"/>\n<info name=\"CPUFamilyNumber\" "
                                   "value=\"{}\"/>\n<info name=\"CPUModelNumber\" value=\"{}\"/>\n",
                                   vendor, family, model));
  };
  struct Case {
    std::string vendor;
    int family, model;
    double gigabytes;
  };
  for (const Case& one :
       {Case{"GenuineIntel", 6, 79, 6}, Case{"GenuineIntel", 6, 85, 10}, Case{"GenuineIntel", 6, 106, 10},
        Case{"GenuineIntel", 6, 143, 22}, Case{"GenuineIntel", 6, 207, 40}, Case{"AuthenticAMD", 23, 49, 16},
        Case{"AuthenticAMD", 25, 1, 24}, Case{"AuthenticAMD", 26, 2, 32}, Case{"Unknown", 1, 1, 8}}) {
    const DiscoveredServer server =
        read_hwloc_topology(with_processor(one.vendor, one.family, one.model), "f");
    const Platform found = written({"found", "v100-sxm2-16gb", 1, server, {}});
    CHECK(found.node.inter_socket.bandwidth.value == Approx(1e9 * one.gigabytes));
    CHECK(found.node.half_duplex_sockets);
  }
  const Platform dgx =
      written({"found", "v100-sxm2-16gb", 1, read_nvidia_topology(file("dgx1.txt"), "f"), {}});
  CHECK_FALSE(dgx.node.half_duplex_sockets);
}

TEST_CASE("kinds of bridges and devices that hwloc does not know are others", "[platforms]") {
  std::string unknown = file("two-sockets.xml");
  const auto replace_all = [&unknown](const std::string& from, const std::string& to) {
    for (std::size_t at = 0; (at = unknown.find(from, at)) != std::string::npos; at += to.size())
      unknown.replace(at, from.size(), to);
  };
  replace_all("bridge_type=\"1-1\"", "bridge_type=\"10-17\"");
  replace_all("osdev_type=\"3\"", "osdev_type=\"10\"");  // of the RDMA devices
  const DiscoveredServer server = read_hwloc_topology(unknown, "f");
  CHECK(server.gpus.size() == 8);
  CHECK(server.gpus.back().pcie_switch == -1);
  CHECK(server.nics.empty());
}

TEST_CASE("ibnetdiscover gives nodes, rate, ports and taper of a fat tree", "[platforms]") {
  const DiscoveredFabric fabric = read_infiniband_fabric(file("four-leaves.txt"), "f");
  CHECK(fabric.nodes == 16);
  CHECK(fabric.nics_per_node == 1);
  CHECK(fabric.rate == "4xEDR");
  CHECK(fabric.port->value == Approx(12.5e9));
  REQUIRE(fabric.levels.size() == 1);
  CHECK(fabric.levels[0].down == 4);
  CHECK(fabric.levels[0].up == 2);
  CHECK(fabric.levels[0].taper == 2);
  const Platform found = written({"found", "v100-sxm2-16gb", 1, {}, fabric});
  CHECK(found.nodes == 16);
  CHECK(std::get<FatTreeShape>(found.network.fabric).levels.front().taper == 2);
  CHECK_THROWS_WITH(read_infiniband_fabric("Ca 1 \"H-1\" # \"node\"\n", "f"),
                    Catch::StartsWith("f:1: expected the output"));
}

TEST_CASE("Slurm's file gives nodes and leaves, whose ports are the nodes' NICs", "[platforms]") {
  const DiscoveredFabric fabric = read_slurm_topology(kSlurm, "f");
  CHECK(fabric.nodes == 46);
  REQUIRE(fabric.levels.size() == 1);
  CHECK(fabric.levels[0].down == 16);
  const Platform found = written(with_fabric(read_nvidia_topology(file("dgx1.txt"), "f"), fabric));
  CHECK(std::get<FatTreeShape>(found.network.fabric).levels.front().down == 64);
}

TEST_CASE("damaged files of Slurm are refused with their line", "[platforms]") {
  const auto refused = [](const std::string& text, const std::string& message) {
    CHECK_THROWS_WITH(read_slurm_topology(text, "f"), Catch::Contains(message));
  };
  refused("", "f:1: expected lines SwitchName=");
  refused("SwitchName=a\n", "f:1: a: expected either Nodes= or Switches=");
  refused("SwitchName=a Nodes=n[1-\n", "f:1: expected \"]\"");
  refused("SwitchName=a Nodes=n[3-1]\n", "expected a rising range");
  refused("SwitchName=a Switches=b\n", "there is no switch b");
  refused("SwitchName=a Switches=b\nSwitchName=b Switches=a\n", "without a cycle");
  refused("SwitchName=a Nodes=n[1-9999999]\n", "expected at most 1048576 hosts");
  refused("SwitchName=a Nodes=n[2147483647]\n",
          "f:1: expected at most 9 digits in a host list, got \"2147483647\"");
  refused("SwitchName=a Nodes=" + std::string(300, 'n') + "\n",
          "expected a host's name of at most 255 letters");
}

TEST_CASE("host lists are those of Slurm", "[platforms]") {
  CHECK(host_list("gpu[08-10,3],login", "f") ==
        std::vector<std::string>{"gpu08", "gpu09", "gpu10", "gpu3", "login"});
  CHECK(host_list("r[1-2]n[1-2]", "f") == std::vector<std::string>{"r1n1", "r1n2", "r2n1", "r2n2"});
}

namespace {

/// A fabric as ibnetdiscover prints it: `hosts` hosts, four a leaf, and a cable from each leaf to each spine.
/// Each leaf has an aggregation node, and the first spine a management node.
std::string fabric_text(int hosts, int spines, bool named) {
  const int leaves = (hosts + 3) / 4;
  std::string text, adapters;
  for (int leaf = 0; leaf < leaves; ++leaf) {
    text += fmt::format("\nSwitch 40 \"S-a{}\" # \"leaf{}\" enhanced port 0 lid 1 lmc 0\n", leaf, leaf);
    for (int host = 4 * leaf; host < std::min(hosts, 4 * leaf + 4); ++host) {
      const std::string name =
          named ? fmt::format("node{} mlx5_0", host) : "MT4123 ConnectX6   Mellanox Technologies";
      text += fmt::format("[{}] \"H-{}\"[1](1) # \"{}\" lid 1 4xHDR\n", host % 4 + 1, host, name);
      adapters += fmt::format("\nCa 1 \"H-{}\" # \"{}\"\n[1](1) \"S-a{}\"[1] # lid 1 \"leaf\" 4xHDR\n", host,
                              name, leaf);
    }
    for (int spine = 0; spine < spines; ++spine)
      text +=
          fmt::format("[{}] \"S-b{}\"[{}] # \"spine{}\" lid 1 4xHDR\n", 20 + spine, spine, leaf + 1, spine);
    text +=
        fmt::format("[41] \"H-f{}\"[1](1) # \"Mellanox Technologies Aggregation Node\" lid 1 4xHDR\n", leaf);
    adapters += fmt::format(
        "\nCa 1 \"H-f{}\" # \"Mellanox Technologies Aggregation Node\"\n[1](1) \"S-a{}\"[41] # 4xHDR\n", leaf,
        leaf);
  }
  for (int spine = 0; spine < spines; ++spine) {
    text += fmt::format("\nSwitch 40 \"S-b{}\" # \"spine{}\" enhanced port 0 lid 1 lmc 0\n", spine, spine);
    for (int leaf = 0; leaf < leaves; ++leaf)
      text += fmt::format("[{}] \"S-a{}\"[{}] # \"leaf{}\" lid 1 4xHDR\n", leaf + 1, leaf, 20 + spine, leaf);
    if (spine == 0) text += "[40] \"H-manager\"[1](1) # \"ufm mlx5_0\" lid 1 4xHDR\n";
  }
  return text + adapters +
         "\nCa 1 \"H-manager\" # \"ufm mlx5_0\"\n[1](1) \"S-b0\"[40] # lid 1 4xHDR\n"
         "\nRt 2 \"R-1\" # \"router\"\n[1] \"S-b0\"[39] # lid 1 4xHDR\n";
}

}  // namespace

TEST_CASE("aggregation nodes are no hosts, and a spine with a management node is no leaf", "[platforms]") {
  const DiscoveredFabric fabric = read_infiniband_fabric(fabric_text(122, 9, true), "f");
  CHECK(fabric.nodes == 123);
  CHECK(fabric.nics_per_node == 1);
  CHECK(fabric.found_by == "ibnetdiscover, switches from the leaves up: 31 + 9");
  REQUIRE(fabric.levels.size() == 1);
  CHECK(fabric.levels[0].down == 4);
  CHECK(fabric.levels[0].up == 4);  // more ports up than down are nothing that a platform has
  CHECK(fabric.levels[0].taper == 1);
  CHECK(written(with_fabric(read_nvidia_topology(file("dgx1.txt"), "f"), fabric)).nodes ==
        123);  // its own reader takes what is written
  CHECK_THAT(fabric.doubts.back(), Catch::Matchers::Contains("have cables to 9 others"));
}

TEST_CASE("hosts with other numbers of ports are no nodes, and their ports do not count", "[platforms]") {
  // Four nodes with a port on each of two rails, a management node on one, a storage server on both.
  std::string text, adapters;
  const auto add_port = [&](const std::string& host, int leaf, int port) {
    const std::string name = fmt::format("{}_{}_{}", host, leaf, port);
    text += fmt::format("[{0}] \"H-{1}\"[1](1) # \"{2} mlx5_{3}\" lid 1 4xNDR\n", port, name, host, leaf);
    adapters += fmt::format("\nCa 1 \"H-{0}\" # \"{1} mlx5_{2}\"\n[1](1) \"S-a{2}\"[{3}] # lid 1 4xNDR\n",
                            name, host, leaf, port);
  };
  for (int leaf = 0; leaf < 2; ++leaf) {
    text += fmt::format("\nSwitch 65 \"S-a{}\" # \"leaf\" enhanced port 0 lid 1 lmc 0\n", leaf);
    for (int node = 0; node < 4; ++node) add_port(fmt::format("dgx-{}", node), leaf, node + 1);
    if (leaf == 0) add_port("ufm", leaf, 5);
    for (int port = 6; port < 8; ++port) add_port("storage", leaf, port);
    for (int cable = 0; cable < 4; ++cable)
      text += fmt::format("[{}] \"S-b\"[{}] # 4xNDR\n", 40 + cable, cable);
  }
  text += "\nSwitch 65 \"S-b\" # \"spine\" enhanced port 0 lid 1 lmc 0\n";
  for (int cable = 0; cable < 8; ++cable)
    text += fmt::format("[{}] \"S-a{}\"[4] # 4xNDR\n", cable, cable / 4);
  const DiscoveredFabric fabric = read_infiniband_fabric(text + adapters, "f");
  CHECK(fabric.nodes == 4);
  CHECK(fabric.nics_per_node == 2);
  CHECK(fabric.rails);
  REQUIRE(fabric.levels.size() == 1);
  CHECK(fabric.levels[0].down == 4);
  CHECK(fabric.levels[0].taper == 1);
  CHECK(fabric.doubts == std::vector<std::string>{"2 of 6 hosts have not 2 ports and are left out with "
                                                  "theirs, such as management and storage nodes."});
}

TEST_CASE("cables of an unknown rate are named, and the notes of the file are printed", "[platforms]") {
  std::string text = fabric_text(8, 2, true);
  for (std::size_t at; (at = text.find("4xHDR")) != std::string::npos;) text.replace(at, 5, "4xQQQ");
  const DiscoveredFabric fabric = read_infiniband_fabric(text, "f");
  CHECK_FALSE(fabric.port);
  const DiscoveredPlatform platform = with_fabric(read_nvidia_topology(file("dgx1.txt"), "f"), fabric);
  const std::vector<std::string> doubts = platform_doubts(platform);
  CHECK(std::ranges::count(doubts, "No cable has a rate that is known; that of ports is assumed.") == 1);
  for (const std::string& doubt : doubts)
    CHECK_THAT(platform_file_text(platform, {}), Catch::Matchers::Contains("# - " + doubt));
  const DiscoveredPlatform bare{"found", "h100-sxm", 1, {}, fabric};
  CHECK(written(bare).devices_per_node == 1);
  CHECK(platform_doubts(bare).front().starts_with("Nothing says the GPUs of a node; one is assumed"));
}

TEST_CASE("an adapter that does not name its host is a node of its own", "[platforms]") {
  const DiscoveredFabric fabric = read_infiniband_fabric(fabric_text(8, 2, false), "f");
  CHECK(fabric.nodes == 9);
  CHECK(fabric.nics_per_node == 1);
  REQUIRE_FALSE(fabric.doubts.empty());
  CHECK(fabric.doubts.front() == "8 adapters do not name their host; each counts as one.");
}

TEST_CASE("NICs beside no GPU, and a server without NICs, are named", "[platforms]") {
  const std::string near =
      "     GPU0 GPU1 mlx5_0 mlx5_1 mlx5_2 CPU Affinity\nGPU0 X NV18 PXB SYS SYS 0-15\n"
      "GPU1 NV18 X SYS PXB SYS 16-31\nmlx5_0 PXB SYS X SYS SYS\nmlx5_1 SYS PXB SYS X SYS\n"
      "mlx5_2 SYS SYS SYS SYS X\n";
  DiscoveredPlatform platform{"found", "h100-sxm", 1, read_nvidia_topology(near, "f"), {}};
  CHECK(written(platform).network.nics == 2);
  CHECK(std::ranges::count(
            platform_doubts(platform),
            "1 of 3 NICs share no PCIe switch with a GPU and are left out, such as those of storage.") == 1);
  platform.server = read_nvidia_topology("     GPU0 GPU1\nGPU0 X NV4\nGPU1 NV4 X\n", "f");
  CHECK(std::ranges::count(platform_doubts(platform), "nvidia-smi topo -m lists no NIC; one is assumed.") ==
        1);
}

TEST_CASE("PCIe that no tool prints is that of servers with the device", "[platforms]") {
  const DiscoveredServer server = read_nvidia_topology("     GPU0 GPU1\nGPU0 X NV4\nGPU1 NV4 X\n", "f");
  const auto rate = [&](const std::string& device) {
    return written({"found", device, 1, server, {}}).node.device.bandwidth.value / 1e9;
  };
  CHECK(rate("v100-sxm2-16gb") == 12);
  CHECK(rate("a100-40gb") == 24);
  CHECK(rate("h100-sxm") == 48);
  CHECK(rate("mi300x") == 48);
}

TEST_CASE("functions of one NIC are one NIC", "[platforms]") {
  const DiscoveredServer server = read_nvidia_topology(
      "     GPU0 GPU1 mlx5_0 mlx5_1 mlx5_2 CPU Affinity\nGPU0 X SYS NODE NODE PIX 0-15\nGPU1 SYS X SYS SYS "
      "SYS 16-31\n"
      "mlx5_0 NODE SYS X PIX NODE\nmlx5_1 NODE SYS PIX X NODE\nmlx5_2 PIX SYS NODE NODE X\n",
      "f");
  REQUIRE(server.nics.size() == 2);
  CHECK(server.nics[1].name == "mlx5_2");
  CHECK(server.doubts.front().starts_with("mlx5_1 shares its PCIe bridge"));
}

TEST_CASE("a VGA controller is a GPU only where a vendor's tool computes on it", "[platforms]") {
  std::string text = file("two-sockets.xml");
  const auto replace_all = [&text](const std::string& from, const std::string& to) {
    for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
      text.replace(at, from.size(), to);
  };
  replace_all("0302 [10de:1db5]", "0300 [1002:515e]");
  CHECK(read_hwloc_topology(text, "f").gpus.size() == 8);  // they have cuda0 to cuda7
  replace_all("name=\"cuda", "name=\"card");
  CHECK_THROWS_WITH(read_hwloc_topology(text, "f"), "f:1: expected GPUs of NVIDIA, AMD or Intel, found none");
  CHECK_THROWS_WITH(read_hwloc_topology("<topology version=\"3.0\">", "f"),
                    "f:1: expected XML of hwloc 2, got version 3, which hwloc 2 does not read");
}

TEST_CASE("hwloc's matrix of NVLinks gives the links of GPUs", "[platforms]") {
  const auto with_matrix = [](const std::string& values) {
    std::string text = file("two-sockets.xml");
    const std::string indexes = "3 6 15 ";
    text.insert(text.rfind("</topology>"),
                fmt::format("<distances2 type=\"OSDev\" nbobjs=\"3\" kind=\"9\" name=\"NVLinkBandwidth\" "
                            "indexing=\"gp\">\n<indexes length=\"{}\">{}</indexes>\n<u64values "
                            "length=\"{}\">{}</u64values>\n</distances2>\n",
                            indexes.size(), indexes, values.size(), values));
    return read_hwloc_topology(text, "f");
  };
  const DiscoveredServer server = with_matrix("1000000 50000 25000 50000 1000000 0 25000 0 1000000 ");
  REQUIRE(server.nvlinks.size() == 2);
  CHECK(server.nvlinks[0].b == 1);
  CHECK(server.nvlinks[0].count == 2);
  CHECK(server.nvlinks[1].b == 2);
  CHECK(server.nvlinks[1].count == 1);
  const DiscoveredServer pascal = with_matrix("1000000 40000 33000 40000 1000000 0 33000 0 1000000 ");
  REQUIRE(pascal.nvlinks.size() == 1);
  CHECK(pascal.nvlinks[0].count == 2);
  CHECK(pascal.doubts.front().starts_with("2 entries of NVLinkBandwidth"));
}

TEST_CASE("Slurm's blocks, continued lines and topology.yaml are read", "[platforms]") {
  const DiscoveredFabric continued =
      read_slurm_topology("SwitchName=a Nodes=n[1-4],\\\nm[1-2]\nSwitchName=top \\\n  Switches=a\n", "f");
  CHECK(continued.nodes == 6);
  const DiscoveredFabric blocks =
      read_slurm_topology("BlockName=b1 Nodes=n[1-18]\nBlockName=b2 Nodes=n[19-36]\nBlockSizes=18\n", "f");
  CHECK(blocks.nodes == 36);
  REQUIRE(blocks.levels.size() == 1);
  CHECK(blocks.levels[0].down == 18);
  const DiscoveredFabric yaml = read_slurm_topology(
      "---\n- topology: flat\n  flat: true\n- topology: tree\n  cluster_default: true\n  tree:\n    "
      "switches:\n"
      "      - switch: top\n        children: s[1-2]\n      - switch: s1\n        nodes: n[1-2]\n"
      "      - switch: s2\n        nodes: n[3-4]\n",
      "f");
  CHECK(yaml.nodes == 4);
  REQUIRE(yaml.levels.size() == 1);
  CHECK(yaml.levels[0].down == 2);
  CHECK_THROWS_WITH(read_slurm_topology("SwitchName=a Nodes=n1\nSwitchName=b Nodes=n[1-2]\n", "f"),
                    "f:2: b: the node n1 is below another switch too");
}

TEST_CASE("what levels of Slurm's switches do not tell is named", "[platforms]") {
  const DiscoveredFabric loose =
      read_slurm_topology("SwitchName=a Nodes=n[1-4]\nSwitchName=b Nodes=n[5-6]\n", "f");
  REQUIRE(loose.doubts.size() == 3);
  CHECK(loose.doubts[0] == "Leaves have 2 to 4 nodes; the largest counts.");
  CHECK(loose.doubts[1] == "2 switches have none above them; they are taken as one.");
  const DiscoveredFabric second = read_slurm_topology(
      "- topology: one\n  tree: {switches: [{switch: a, nodes: n1}]}\n- topology: two\n  cluster_default: "
      "true\n"
      "  tree: {switches: [{switch: b, nodes: 'n[1-3]'}]}\n",
      "f");
  CHECK(second.nodes == 3);
  CHECK(second.doubts.front() == "One of the 2 topologies is read: the default one, or else the first.");
}

TEST_CASE("rocm-smi's tables give xGMI links and NUMA nodes", "[platforms]") {
  const std::string text =
      "======= ROCm System Management Interface =======\n======= Weight between two GPUs =======\n"
      "       GPU0  GPU1  GPU2\nGPU0   0     15    72\nGPU1   15    0     72\nGPU2   72    72    0\n\n"
      "======= Link Type between two GPUs =======\n       GPU0  GPU1  GPU2\nGPU0   0     XGMI  PCIE\n"
      "GPU1   XGMI  0     PCIE\nGPU2   PCIE  PCIE  0\n\n======= Numa Nodes =======\n"
      "GPU[0]\t\t: (Topology) Numa Node: 0\nGPU[0]\t\t: (Topology) Numa Affinity: 0\n"
      "GPU[1]\t\t: (Topology) Numa Node: 0\nGPU[2]\t\t: (Topology) Numa Node: 1\n";
  const DiscoveredServer server = read_rocm_topology(text, "f");
  CHECK(server.gpus.size() == 3);
  REQUIRE(server.nvlinks.size() == 1);
  CHECK(server.nvlinks[0].b == 1);
  CHECK(server.sockets == 2);
  CHECK(server.gpus[2].socket == 1);
  CHECK(written({"found", "mi250x-gcd", 1, server, {}}).node.peer.bandwidth.value == Approx(50e9));
  std::string wrong = text;
  wrong.replace(wrong.find("XGMI  PCIE"), 4, "WIFI");
  CHECK_THROWS_WITH(read_rocm_topology(wrong, "f"), "f:10: GPU0: expected XGMI or PCIE, got \"WIFI\"");
  CHECK_THROWS_WITH(read_rocm_topology("hello\n", "f"),
                    Catch::Contains("expected the output of rocm-smi --showtopo"));
}
