#include <catch2/catch.hpp>
#include <map>

#include "core/error.hpp"
#include "core/os/files.hpp"
#include "platforms/discovery/discovered.hpp"

using namespace stepcast;

namespace {

std::string file(const std::string& name) {
  return read_file(STEPCAST_SOURCE_DIR "/tests/platforms/discovery/" + name);
}

/// The platform that the written file describes.
Platform written(const DiscoveredPlatform& platform) {
  const YamlNode root = parse_yaml(platform_file_text(platform), "written.yaml");
  return read_platform(YamlValue(root, ""));
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
