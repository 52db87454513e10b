#include "gpu/devices.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

namespace stepcast {

const std::vector<std::string> kPrecisions{"f32", "tf32", "f16", "bf16"};

GpuOptions DeviceOptions::read() const {
  const auto place = std::find(kPrecisions.begin(), kPrecisions.end(), precision) - kPrecisions.begin();
  return {.device = device_number(device),
          .precision = static_cast<GpuPrecision>(place),
          .layout = layout == "nhwc" ? ImageLayout::nhwc : ImageLayout::nchw,
          .workspace = static_cast<std::size_t>(workspace_mib) << 20};
}

std::string DeviceOptions::text() const {
  return fmt::format(" --device {} --precision {} --layout {} --workspace {}", device, precision, layout,
                     workspace_mib);
}

void add_device_options(CLI::App& command, DeviceOptions& options) {
  command.add_option("--device", options.device, "cuda:NUMBER")->capture_default_str();
  command.add_option("--precision", options.precision, "of products and activations")
      ->check(CLI::IsMember(kPrecisions))
      ->capture_default_str();
  command.add_option("--layout", options.layout, "of images")
      ->check(CLI::IsMember({"nchw", "nhwc"}))
      ->capture_default_str();
  command
      .add_option("--workspace", options.workspace_mib, "most that libraries may use beside tensors [MiB]")
      ->check(CLI::Range(32, 1 << 16))
      ->capture_default_str();
}

}  // namespace stepcast
