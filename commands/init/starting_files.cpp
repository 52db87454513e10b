#include "commands/init/starting_files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "core/error.hpp"
#include "core/text.hpp"
#include "platforms/discovery/discovered.hpp"
#include "platforms/software.hpp"
#include "scenarios/experiment/usual_kernels.hpp"
#include "scenarios/reader/sweep.hpp"

namespace stepcast {
namespace {

std::string workers_text(const ScenarioStart& start) {
  if (start.least == start.most) return fmt::format("[{}]", start.most);
  return fmt::format("{}..{}  # doubled; or a list, or {{from: {}, to: {}, step: {}}}", start.least,
                     start.most, start.least, start.most, start.least);
}

bool is_under_autocast(const ScenarioStart& start) {
  return start.half_transformer && takes_autocast(parse_yaml(start.example, "example"));
}

std::string kernels_line(const ScenarioStart& start) {
  if (start.kernels.empty())
    return "# kernels: {precision: bf16}  # of the estimated layer times; default: f32 (stepcast schema "
           "scenario --table kernels).\n"
           "#   strategy.precision: mixed gives gradients and activations 2 bytes";
  std::string kernels = start.kernels;
  if (is_under_autocast(start)) kernels.insert(kernels.size() - 1, ", autocast: true");
  return fmt::format("kernels: {}  # of the estimated layer times (stepcast schema scenario --table kernels)",
                     kernels);
}

std::string trace_comment(const ScenarioStart& start) {
  if (start.trace != "derived")
    return "layer times that were measured or derived for this network, batch and device";
  return "estimates layer times for any network and device; a trace of your own is better\n"
         "                   # (stepcast import profile.json.gz --model ... -o my-trace.yaml)\n" +
         kernels_line(start);
}

/// The keys of the strategy's example, one a line.
std::string strategy_lines(const ScenarioStart& start) {
  std::string lines;
  for (const auto& [key, value] : parse_yaml(start.example, "example").entries)
    lines += fmt::format("  {}: {}\n", key.text, point_name({{"", value}}).substr(1));
  if (start.recompute) lines += "  recompute: true  # activations are computed again in the backward pass\n";
  // Half precision is more than faster products.
  if (start.half && start.takes_precision && lines.find("  precision:") == std::string::npos)
    lines += "  precision: mixed  # gradients and activations have 2 bytes\n";
  if (is_under_autocast(start))
    lines += "  fp32_gradients: true  # but gradients 4: autocast keeps parameters in fp32\n";
  return lines;
}

/// The list `peers` with every two devices of a node.
std::string peers_text(int devices) {
  std::string text;
  for (int one = 0; one < devices; ++one) {
    for (int other = one + 1; other < devices; ++other)
      text += fmt::format("{}[{}, {}]", text.empty() ? "" : ", ", one, other);
  }
  return "  peers: [" + text + "]  # [0, 1, 2] has two such links between 0 and 1\n";
}

/// Two GeForce of one node are taken to be in a desktop computer: one processor, whose 16 lanes of PCIe they
/// divide (Intel ARK, Core i9-10900K, "PCI Express Configurations: Up to 1x16, 2x8, 1x8+2x4"; AMD X570: 1x16
/// or 2x8).
bool in_desktop(const PlatformStart& start) {
  return start.nodes == 1 && start.devices == 2 && !has_peer_access(start.device);
}

/// The link between sockets, with what NCCL counts for the processors of such servers (src/graph/topo.h):
/// 8 GB/s for QPI (2.5.6), 16 for AMD's, 22 from Sapphire Rapids on; and copies without peer access.
std::string between_sockets_text(const PlatformStart& start, bool nvlinks, const char* assumed) {
  constexpr std::array kRates{8, 16, 22};  // GB/s
  std::string text;
  if (!in_desktop(start))
    text = fmt::format("  inter_socket_link: {{bandwidth: {} GB/s, latency: 0.3 us, source: \"{}\"}}\n",
                       kRates.at(pcie_generation_of(start.device) - 3), assumed);
  if (!nvlinks && !in_desktop(start))
    text += "  inter_socket_duplex: half  # copies between GPUs without peer access\n";
  if (!has_peer_access(start.device))
    text +=
        "  peer_access: false  # the driver allows none; the copies pass through host memory\n"
        "  # staging: 21 GB/s  # all such copies, NCCL's too; nccl-tests: bus bandwidth x devices / 0.93\n";
  return text;
}

/// The link of a device to its socket.
std::string device_link_text(const PlatformStart& start, const char* assumed) {
  const int generation = pcie_generation_of(start.device);
  return fmt::format(
      "  device_link: {{bandwidth: {} GB/s, latency: 0.5 us, source: \"PCIe {}.0 x{}, {}\"}}\n",
      (in_desktop(start) ? 6 : 12) << (generation - 3), generation, in_desktop(start) ? 8 : 16, assumed);
}

/// The mapping `node` of a platform file.
std::string node_text(const PlatformStart& start, const char* assumed) {
  const bool nvswitch = !start.nvlink.empty(), pairs = !start.nvlink_pairs.empty();
  std::string text = fmt::format(
      R"(node:
  kind: {}  # single: one device; pcie: devices on PCIe; switch: an NVSwitch too; links: NVLinks between pairs
  devices: {}
  sockets: {}  # stepcast distributes devices and NICs over them, in order
)",
      start.devices == 1 ? "single"
      : nvswitch         ? "switch"
      : pairs            ? "links"
                         : "pcie",
      start.devices, start.devices > 1 && !in_desktop(start) ? 2 : 1);
  text += device_link_text(start, assumed);
  if (start.devices > 1) text += between_sockets_text(start, nvswitch || pairs, assumed);
  text += fmt::format("  memory: {{bandwidth: 100 GB/s, latency: 0.1 us, source: \"{}\"}}\n", assumed);
  if ((nvswitch || pairs) && start.devices > 1)
    text += fmt::format(
        "  peer_link: {{bandwidth: {{value: {}, source: \"given to stepcast init\"}}, latency: {{value: 0.25 "
        "us, source: "
        "\"{}\"}}}}  # of one direction\n",
        nvswitch ? start.nvlink : start.nvlink_pairs, assumed);
  if (pairs && start.devices > 1) text += peers_text(start.devices);
  return text;
}

}  // namespace

std::string scenario_text(const ScenarioStart& start) {
  std::string text = fmt::format(
      R"(# A scenario of stepcast. All keys: stepcast schema scenario --table . or docs/reference/scenarios.md
# Check it: stepcast check FILE. How large is it: stepcast run FILE --dry-run. Forecast: stepcast run FILE
version: 1
name: {}  # also the name of the results folder
description: {} by {} on {}

# What is trained, and where.
model: {}  # a name (stepcast show model) or a path ending in .yaml
trace: {}  # {}
platform: {}  # a name (stepcast show platform) or a path ending in .yaml
batch_per_worker: {}  # samples of a worker in a step

# How it is trained (stepcast show strategies).
strategy:
{}
)",
      start.name, start.model, start.strategy, start.platform, start.model, start.trace, trace_comment(start),
      start.platform, start.batch, strategy_lines(start));
  if (start.nodes > 0)
    text +=
        fmt::format("set: {{platform.nodes: {}}}  # more nodes than in the platform file\n\n", start.nodes);
  text += fmt::format(
      R"(# What varies. Every combination is a point; more keys may follow, such as strategy.all_reduce: [ring, double_tree]
sweep:
  workers: {}

# Inputs that are not known, with a range and a reason. They widen the interval of each forecast.
# assumed:
#   - {{key: platform.network.bandwidth, range: [20 GB/s, 24 GB/s], why: "what NCCL reaches here"}}

# The size of the data set adds hours, and dollars if the platform has a price.
# epoch: {{samples: 1281167, epochs: 90}}

# Variation from step to step: 20 steps are simulated, or simulation.steps.
# noise: {{jitter: lognormal, sigma: 0.02}}
# simulation: {{steps: 10}}
)",
      workers_text(start));
  return text;
}

std::string model_text(const std::string& name) {
  return fmt::format(
      R"(# A network of stepcast. All keys: stepcast schema model --table . or docs/reference/networks.md
# Check it, and see shapes, parameters and work: stepcast show model FILE
# From ONNX or Hugging Face: stepcast import --help. From a PyTorch profile: docs/tutorial/profile-to-forecast.md
version: 1
name: {}
source: "written by stepcast init; say here where the layers come from"
sample: image
input: [3, 32, 32]  # one sample, without the batch: channels, height, width
# PyTorch's Conv2d is kind convolution, Linear is dense, Flatten is reshape; all kinds: docs/reference/networks.md
layers:  # in the order in which they run; each reads the layer above it, or the layers that `inputs` names
  - {{name: conv1, kind: convolution, filters: 32, kernel: 3, pad: 1, bias: false}}
  - {{name: bn1, kind: batch_norm}}
  - {{name: relu1, kind: relu}}
  - {{name: conv2, kind: convolution, filters: 32, kernel: 3, pad: 1}}
  - {{name: sum, kind: add, inputs: [conv2, relu1]}}  # a residual connection
  - {{name: pool, kind: max_pool, kernel: 2}}
  - {{name: flatten, kind: reshape, shape: [8192]}}
  - {{name: fc1, kind: dense, units: 256}}
  - {{name: relu2, kind: relu}}
  - {{name: fc2, kind: dense, units: 10}}
  - {{name: loss, kind: softmax_cross_entropy}}
# A GPT-style network has one key in place of `input` and `layers`:
# transformer_stack: {{layers: 12, width: 768, heads: 12, sequence: 1024, vocabulary: 50257}}
)",
      name);
}

std::string platform_text(const PlatformStart& start) {
  const char* assumed = "assumed; replace it by a measurement or a data sheet";
  std::string text = fmt::format(
      R"(# A platform of stepcast. All keys: stepcast schema platform --table . or docs/reference/platforms.md
# Check it: stepcast check FILE. Look at it: stepcast show platform FILE
# Bandwidths are effective: what a benchmark reaches, some 96 % of a NIC's data sheet at best.
version: 1
name: {}
source: "written by stepcast init; say here where the numbers come from"
device: {}  # a name (stepcast show device), or a file ending in .yaml with rates of your own device
nodes: {}
max_nodes: {}
# price_per_device_hour: 2.5  # US dollars
)",
      start.name, start.device, start.nodes, start.nodes);
  if (compute_capability_of(start.device))
    text += fmt::format(
        "software: {{nccl: \"2.18\", source: \"{}\"}}  # without it, collectives are simulated as MPI or "
        "gloo run them\n"
        "#   gpudirect: true in it lets NICs read the memory of GPUs; by default only those on the GPUs' "
        "PCIe switches do\n",
        assumed);
  else if (start.device.ends_with(".yaml"))
    text +=
        "# software: {nccl: \"2.18\", compute_capability: 8.9}  # if NCCL sums gradients; without it, "
        "collectives are simulated as\n"
        "#   MPI or gloo run them. CUDA's compute capability of the GPU: developer.nvidia.com/cuda-gpus\n";
  text += node_text(start, assumed);
  text += fmt::format(
      R"(network:
  kind: switch  # a switch that never blocks; fat_tree, dragonfly, torus and sites have further keys
  nics: {}  # of a node
  bandwidth: {{value: {}, source: "given to stepcast init"}}  # of one NIC
  latency: {{value: 1.5 us, source: "{}"}}
messages:  # what the software adds to each message, by size
  between_nodes:
    - {{up_to: 64 KiB, overhead: 1 us, bandwidth_factor: 0.5, source: "{}"}}
    - {{overhead: 5 us, bandwidth_factor: 0.95, source: "{}"}}
  inside_node:
    - {{overhead: 3 us, bandwidth_factor: 0.95, source: "{}"}}
# storage: {{kind: local, bandwidth: 4 GB/s, latency: 100 us}}  # only needed for data loading and checkpoints
)",
      start.nics, start.nic, assumed, assumed, assumed, assumed);
  return text;
}

namespace {

/// The figures of a data sheet, by their paths in a device file.
std::map<std::string, std::string> given_figures(const DeviceStart& start, const YamlNode& like) {
  std::map<std::string, std::string> given{{"peak", start.peak},
                                           {"memory_bandwidth", start.memory_bandwidth},
                                           {"memory", start.memory},
                                           {"precisions.f16.peak", start.tensor_peak}};
  if (!start.memory.empty()) {
    const auto bytes = [&](const char* key) {
      return YamlValue(*like.find(key)->find("value"), key).bytes();
    };
    const double usable = bytes("usable_memory") / bytes("memory");
    given["usable_memory"] =
        fmt::format("{:.0f} MiB", usable * *parse_quantity(start.memory, Dimension::bytes) / 0x1p20);
  }
  if (!start.tensor_peak.empty()) {
    const double peak = *parse_quantity(start.tensor_peak, Dimension::flops_per_second);
    given["precisions.tf32.peak"] = fmt::format("{:.6g} Tflop/s", peak / 2 / 1e12);
  }
  std::erase_if(given, [](const auto& one) { return one.second.empty(); });
  return given;
}

/// The `source` of a figure: either the user gave it, or it follows from one that he gave.
std::string figure_source(const std::string& path, const std::string& like) {
  if (path == "usable_memory") return fmt::format("assumed: the share of memory that it is on {}", like);
  if (path == "precisions.tf32.peak") return "assumed: half of that in fp16, as on an A100";
  return "given to stepcast init";
}

void append_figures(const YamlNode& device, const std::string& path, const std::string& like,
                    const std::map<std::string, std::string>& given, std::string& text) {
  const std::size_t indent = 2 * (std::ranges::count(path, '.') + (path.empty() ? 0 : 1));
  for (const auto& [key, value] : device.entries) {
    const std::string at = path.empty() ? key.text : path + "." + key.text;
    const YamlNode* figure = value.find("value");
    if (value.kind != YamlNode::Kind::mapping) continue;  // name, rates, version
    text += std::string(indent, ' ') + key.text + ":";
    if (figure == nullptr) {
      text += "\n";
      append_figures(value, at, like, given, text);
      continue;
    }
    const auto found = given.find(at);
    const bool known = found != given.end();
    text += fmt::format(" {{value: {}, source: \"{}\"}}\n", known ? found->second : figure->text,
                        known ? figure_source(at, like) : "assumed as on " + like);
  }
}

}  // namespace

std::string device_text(const DeviceStart& start, const YamlNode& like) {
  const YamlNode* precisions = like.find("precisions");
  if (!start.tensor_peak.empty() && (precisions == nullptr || precisions->find("f16") == nullptr))
    throw InputError(fmt::format("--tensor-peak: {} has no rates of tensor cores; give --like another device",
                                 start.like));
  std::string text = fmt::format(
      R"(# A device of stepcast. All keys: stepcast schema device --table . or docs/reference/devices.md
# Check it: stepcast check FILE. In a platform: device: FILE
# Peaks are those of the data sheet, without sparsity. `kernels` has the shares of these peaks that kernels reach. Shares
# from a PyTorch profile are better than those of a similar device (docs/how-to/bring-your-own-gpu.md).
version: 1
name: {}
)",
      start.name);
  append_figures(like, "", start.like, given_figures(start, like), text);
  if (like.find("kernels") == nullptr && like.find("efficiency_of") == nullptr)
    text += fmt::format("efficiency_of: {{value: {}, source: \"assumed\"}}\n", start.like);
  return text;
}

std::string matching_trace(const std::vector<std::string>& traces, const std::string& model,
                           const std::string& device, int batch) {
  const std::string family =
      device.substr(0, device.find('-'));  // "v100" of v100-sxm2-16gb, "cpu" of cpu-core
  const std::string begin = fmt::format("{}-b{}-{}", model, batch, family);
  for (const std::string& trace : traces) {
    if (trace == begin || trace.starts_with(begin + "-")) return trace;
  }
  return "derived";
}

}  // namespace stepcast
