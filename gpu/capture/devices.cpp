#include "gpu/capture/devices.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.hpp"
#include "validate/launch/real_run_options.hpp"

namespace stepcast {

GpuOptions DeviceOptions::gpu_options() const {
  const auto place = std::find(kPrecisions.begin(), kPrecisions.end(), precision) - kPrecisions.begin();
  return {.device = device_number(device),
          .precision = static_cast<GpuPrecision>(place),
          .layout = layout == "nhwc" ? ImageLayout::nhwc : ImageLayout::nchw,
          .workspace = static_cast<std::size_t>(workspace_mib) << 20,
          .fuses = !no_fusion};
}

std::string DeviceOptions::command_line() const {
  return fmt::format(" --device {} --precision {} --layout {} --workspace {}{}", device, precision, layout,
                     workspace_mib, no_fusion ? " --no-fusion" : "");
}

void add_device_options(Command command, DeviceOptions& options) {
  add_gpu_options(command, options, "cuda:NUMBER");
}

std::string device_file_of(const std::string& gpu) {
  struct File {
    const char *in_name, *file;
  };
  for (const File& one : {File{"H100 80GB HBM3", "h100-sxm"}, File{"A100-SXM4-40GB", "a100-40gb"},
                          File{"V100-SXM2-16GB", "v100-sxm2-16gb"}, File{"P100-SXM2", "p100-sxm2"},
                          File{"P100-PCIE", "p100-pcie"}, File{"K80", "k80"}}) {
    if (gpu.find(one.in_name) != std::string::npos) return one.file;
  }
  if (gpu.ends_with(" H200")) return "h200";  // neither the slower H200 NVL nor the GH200
  throw InputError(fmt::format(
      "models/devices has no file for {}: add one, or name the most similar device with --device-file NAME",
      gpu));
}

}  // namespace stepcast
