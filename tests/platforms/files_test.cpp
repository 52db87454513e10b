#include <catch2/catch.hpp>
#include <cmath>
#include <fstream>
#include <iterator>
#include <set>

#include "built_platforms.hpp"
#include "platforms/platform_table.hpp"

using namespace stepcast;

namespace {

std::vector<std::filesystem::path> platform_files() {
  std::vector<std::filesystem::path> files;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::string(STEPCAST_SOURCE_DIR) + "/platforms")) {
    if (entry.path().extension() == ".yaml") files.push_back(entry.path());
  }
  return files;
}

/// Line of the first mapping that holds a figure with a unit but no `source`; 0 if there is none.
int line_without_source(const YamlNode& node) {
  bool has_figure = false;
  for (const auto& [key, value] : node.entries) {
    if (const int line = line_without_source(value)) return line;
    const bool scalar = value.kind == YamlNode::Kind::scalar;
    has_figure =
        has_figure || (scalar && value.text.find_first_of("0123456789") == 0 && value.text.find(' ') < 9);
  }
  for (const YamlNode& item : node.items) {
    if (const int line = line_without_source(item)) return line;
  }
  return has_figure && node.find("source") == nullptr ? node.place.line : 0;
}

/// Time of one message between two endpoints without other traffic.
double message_seconds(const Platform& platform, int from, int to, double bytes) {
  const Topology topology(platform);
  const MessageCost& cost = message_cost(platform.message_costs, {bytes});
  double bandwidth = INFINITY;
  for (const int id : route_between(topology, from, to)) {
    bandwidth = std::min(bandwidth, topology.link(id).bandwidth.value);
  }
  return (cost.overhead + topology.route_latency(from, to)).value +
         bytes / (cost.bandwidth_factor * bandwidth);
}

}  // namespace

TEST_CASE("every link of every platform has a name of its own", "[platforms]") {
  for (const auto& file : platform_files()) {
    CAPTURE(file.stem());
    const Topology topology(platform_file(file.stem()));
    std::set<std::string> names;
    for (int id = 0; id < topology.link_count(); ++id) names.insert(topology.dotted_link_name(id));
    CHECK(std::ssize(names) == topology.link_count());
  }
}

TEST_CASE("every platform file can be read, and its routes are connected", "[platforms]") {
  CHECK(platform_files().size() >= 17);
  for (const auto& file : platform_files()) {
    CAPTURE(file.stem());
    const Platform platform = platform_file(file.stem());
    CHECK(platform.name == file.stem());
    CHECK(fault_of_routes(platform).empty());
    CHECK(platform_table(platform).find("bisection") != std::string::npos);
  }
}

TEST_CASE("every platform names a device of models/devices", "[platforms]") {
  for (const auto& file : platform_files()) {
    const std::string device = platform_file(file.stem()).device_name;
    CAPTURE(file.stem(), device);
    CHECK(std::filesystem::exists(std::string(STEPCAST_SOURCE_DIR) + "/models/devices/" + device + ".yaml"));
  }
}

TEST_CASE("every platform with GPUs names its communication library or says why it has none", "[platforms]") {
  for (const auto& file : platform_files()) {
    CAPTURE(file.stem());
    const Platform platform = platform_file(file.stem());
    if (platform.device_name.starts_with("cpu")) continue;
    std::ifstream in(file);
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    CHECK((platform.software.nccl > 0) != (text.find("\n# No software: ") != std::string::npos));
  }
}

TEST_CASE("the example in docs/reference/platforms.md can be read", "[platforms]") {
  std::ifstream in(std::string(STEPCAST_SOURCE_DIR) + "/docs/reference/platforms.md");
  const std::string page{std::istreambuf_iterator<char>(in), {}};
  const auto start = page.find("```yaml\n") + 8;
  const YamlNode root = parse_yaml(page.substr(start, page.find("```", start) - start), "platforms.md");
  const Platform platform = read_platform(YamlValue(root, ""), shipped_device(root.find("device")->text));
  CHECK(platform.devices() == 32);
  CHECK(fault_of_routes(platform).empty());
}

TEST_CASE("every figure with a unit in a platform file has a source beside it", "[platforms]") {
  for (const auto& file : platform_files()) {
    CAPTURE(file.stem());
    CHECK(line_without_source(read_yaml(file)) == 0);
  }
  CHECK(line_without_source(parse_yaml("a: 1\nb:\n  bandwidth: 3 GB/s\n", "f.yaml")) == 3);
}

TEST_CASE("piz-daint reproduces the measured table of osu_latency", "[platforms]") {
  const Platform platform = platform_file("piz-daint");
  // Size [B], one way [us], host memory, two nodes: Sarus documentation, cookbook, OSU micro benchmarks.
  const std::vector<std::pair<double, double>> measured = {
      {8, 1.09},       {512, 1.15},     {1024, 1.39},      {2048, 1.67},      {4096, 2.27},
      {8192, 4.21},    {16384, 5.12},   {32768, 6.73},     {65536, 10.07},    {131072, 16.69},
      {262144, 29.96}, {524288, 56.45}, {1048576, 109.28}, {2097152, 216.29}, {4194304, 431.85}};
  for (const auto& [bytes, microseconds] : measured) {
    const double modelled =
        1e6 * message_seconds(platform, platform.host_endpoint(0), platform.host_endpoint(1), bytes);
    CHECK(modelled == Approx(microseconds)
                          .epsilon(0.04));  // the measured times of eager messages are not linear in the size
  }
}

TEST_CASE("neighbours of the ring of devices are linked directly in Big Basin and DGX-1", "[platforms]") {
  for (const std::string name : {"big-basin", "dgx1v", "p3-16xlarge", "v100-one-edr"}) {
    const Topology topology(platform_file(name));
    for (int d = 0; d < 8; ++d) CHECK(route_between(topology, d, (d + 1) % 8).size() == 1);
  }
}

TEST_CASE("the H100 pod keeps equal rails on one leaf inside a scalable unit", "[platforms]") {
  Platform platform = platform_file("dgx-h100-pod");
  platform.nodes = platform.max_nodes;
  CHECK(platform.devices() == 16384);
  const Topology topology(platform);
  const auto switches = [&](int from, int to) {
    int count = 1;
    for (const int id : route_between(topology, from, to)) count += topology.link_name(id).find("node") != 0;
    return count;
  };
  CHECK(switches(3, 8 * 31 + 3) == 1);   // the same rail and unit
  CHECK(switches(3, 8 * 31 + 4) == 3);   // another rail
  CHECK(switches(3, 8 * 127 + 3) == 3);  // another unit
  CHECK(switches(3, 8 * 128 + 3) == 5);  // behind the core
  // RA-11333-001 counts 16,384 cables from nodes to leaves, leaves to spines and spines to the core.
  int leaf = 0, core = 0;
  for (int id = 0; id < topology.link_count(); ++id) {
    leaf += topology.link_kind(id) == "leaf - level-2 switch";
    core += topology.link_kind(id) == "level-2 switch - spine";
  }
  CHECK(leaf == 2 * 16384);
  CHECK(core == 2 * 16384);
}

TEST_CASE("the figures of the largest machines equal those of their makers", "[platforms]") {
  const Platform titan = platform_file("titan");
  CHECK(std::get<TorusShape>(titan.network.fabric).size == std::array{25, 16, 24});
  CHECK(titan.nodes == 18688);
  const Platform daint = platform_file("piz-daint");
  CHECK(std::get<DragonflyShape>(daint.network.fabric).groups * 384 >= daint.nodes);
  const Platform sierra = platform_file("sierra");
  CHECK(sierra.network.port().bandwidth.value == 24e9);
  CHECK(std::get<FatTreeShape>(sierra.network.fabric).levels[0].taper == 2);
}
