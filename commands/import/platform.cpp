#include <fmt/format.h>

#include <filesystem>
#include <memory>

#include "commands/commands.hpp"
#include "commands/import/written_file.hpp"
#include "core/error.hpp"
#include "core/os/files.hpp"
#include "core/text.hpp"
#include "platforms/discovery/discovered.hpp"
#include "scenarios/reader/library.hpp"

namespace stepcast {
namespace {

constexpr std::uintmax_t kMostBytes = 64 << 20;

struct PlatformFiles {
  std::string nvidia, rocm, lstopo, fabric, device;
  int nodes = 1;
  std::filesystem::path output;
};

std::string limited_file(const std::filesystem::path& file) {
  std::error_code none;
  if (std::filesystem::file_size(file, none) > kMostBytes && !none)
    throw InputError(fmt::format("{}: expected at most {} MiB", file.string(), kMostBytes >> 20));
  return read_file(file);
}

std::string text_file(const std::string& file) {
  std::string text = limited_file(file);
  std::string plain = text;
  std::erase(plain, '\033');  // nvidia-smi underlines its header
  if (const auto bad = first_bad_byte(plain)) throw InputError(fmt::format("{}: {}", file, bad->reason));
  return text;
}

DiscoveredFabric read_fabric(const std::string& file) {
  const std::string text = text_file(file);
  const bool infiniband =
      text.find("switchguid=") != std::string::npos || text.find("\"S-") != std::string::npos;
  return infiniband ? read_infiniband_fabric(text, file) : read_slurm_topology(text, file);
}

DiscoveredPlatform discover(const PlatformFiles& files) {
  DiscoveredPlatform platform;
  platform.name = files.output.stem().string();
  platform.device = files.device;
  platform.nodes = files.nodes;
  if (!files.nvidia.empty()) platform.server = read_nvidia_topology(text_file(files.nvidia), files.nvidia);
  if (!files.rocm.empty()) platform.server = read_rocm_topology(text_file(files.rocm), files.rocm);
  if (!files.lstopo.empty()) {
    const DiscoveredServer hwloc = read_hwloc_topology(limited_file(files.lstopo), files.lstopo);
    platform.server = platform.server ? with_hwloc(*platform.server, hwloc) : hwloc;
  }
  if (!files.fabric.empty()) platform.fabric = read_fabric(files.fabric);
  return platform;
}

void import_platform(const PlatformFiles& files) {
  if (files.nvidia.empty() && files.rocm.empty() && files.lstopo.empty() && files.fabric.empty())
    throw InputError("import-platform: give at least one of --nvidia-smi, --rocm-smi, --lstopo and --fabric");
  if (files.output.extension() != ".yaml")
    throw InputError(
        fmt::format("--output: expected a path ending in .yaml, got \"{}\"", files.output.string()));
  Library library;
  const YamlNode device = command_line_name(files.device);
  const Device& described = library.device(YamlValue(device, "--device"));
  const DiscoveredPlatform found = discover(files);
  const std::string text = platform_file_text(found, described);
  check_writable(files.output.has_parent_path() ? files.output.parent_path() : ".");
  write_atomically(files.output, text);
  const Platform platform = read_written([&] {
    const YamlNode written = parse_yaml_file(text, files.output.string());
    return read_platform(YamlValue(written, ""), described);
  });
  fmt::print("{}: {} nodes of {} {}, {} NICs a node\n", platform.name, platform.nodes,
             platform.devices_per_node, platform.device_name, platform.network.nics);
  for (const std::string& doubt : platform_doubts(found)) fmt::print("note: {}\n", doubt);
  fmt::print(
      "written: {}\nnext: replace the figures whose source is \"assumed\"; stepcast show platform {}\n",
      files.output.string(), files.output.string());
}

}  // namespace

void add_import_platform(Command app) {
  const Command command = app.add_subcommand(
      "import-platform", "Write a platform file from what tools print about your servers and their network.");
  auto files = std::make_shared<PlatformFiles>();
  auto output = std::make_shared<std::string>();
  const Option nvidia = command
                            .add_option("--nvidia-smi", files->nvidia,
                                        "Output of: nvidia-smi topo -m. GPUs, NVLinks, PCIe switches, NICs.")
                            .type_name("FILE");
  command
      .add_option("--rocm-smi", files->rocm, "Output of: rocm-smi --showtopo. GPUs, xGMI links, NUMA nodes.")
      .type_name("FILE")
      .excludes(nvidia);
  command
      .add_option("--lstopo", files->lstopo,
                  "XML of hwloc: lstopo FILE.xml. Sockets and the rates of PCIe links. For GPUs without "
                  "NVLink, this file alone suffices.")
      .type_name("FILE");
  command
      .add_option("--fabric", files->fabric,
                  "Output of ibnetdiscover, or Slurm's topology.conf or topology.yaml. Nodes, levels of "
                  "switches, rates.")
      .type_name("FILE");
  command.add_option("--device", files->device, "Device of a worker: a name in models/devices/.")
      .required()
      .type_name("NAME");
  command.add_option("--nodes", files->nodes, "Number of nodes if no fabric is given. Default: 1.")
      .range(1, 1 << 20);
  command
      .add_option("-o,--output", *output,
                  "Platform file, whose stem is the platform's name, or - for standard output.")
      .required()
      .type_name("FILE.yaml");
  command.footer(
      "Example: nvidia-smi topo -m >topo.txt; stepcast import-platform --nvidia-smi topo.txt --device "
      "a100-40gb -o my-cluster.yaml");
  command.callback_with_file(
      [files, output] {
        files->output = *output;
        import_platform(*files);
      },
      *output, "imported");
}

}  // namespace stepcast
