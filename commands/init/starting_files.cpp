#include "commands/init/starting_files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "core/error.hpp"
#include "core/text.hpp"
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

DiscoveredPlatform platform_of(const PlatformStart& start, const Device& device) {
  // Two GeForce of one node are taken to be in a desktop computer: one processor, whose 16 lanes of PCIe they
  // divide (Intel ARK, Core i9-10900K, "PCI Express Configurations: Up to 1x16, 2x8, 1x8+2x4"; AMD X570: 1x16
  // or 2x8).
  const bool desktop = start.nodes == 1 && start.devices == 2 && !device.peer_access;
  DiscoveredServer server;
  server.found_by = "stepcast init";
  server.sockets = start.devices > 1 && !desktop ? 2 : 1;
  server.pcie_lanes = desktop ? 8 : 16;
  for (int i = 0; i < start.devices; ++i) {
    server.gpus.push_back({.name = "", .socket = i * server.sockets / start.devices});
    for (int j = i + 1; j < start.devices && start.nvlinks == PlatformStart::Nvlinks::pairs; ++j)
      server.nvlinks.push_back({i, j});
  }
  if (start.nvlinks == PlatformStart::Nvlinks::to_switch && start.devices > 1) server.nvlinks_to_switch = 1;
  server.nics.resize(start.nics);
  return {start.name, start.device, start.nodes, server, {}, start.nic, start.nvlink};
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
  if (like.find("kernels") == nullptr && kernels_of(like) == nullptr && like.find("efficiency_of") == nullptr)
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
