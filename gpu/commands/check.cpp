#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "core/error.hpp"
#include "gpu/capture/devices.hpp"
#include "gpu/check/check_layers.hpp"
#include "gpu/commands/commands.hpp"

namespace stepcast {
namespace {

struct Options {
  DeviceOptions device;
  std::vector<std::string> precisions = kPrecisions;
};

/// @return number of arrays outside the tolerance
int check_precision(DeviceOptions device, const std::string& precision) {
  device.precision = precision;
  const GpuOptions gpu = device.gpu_options();
  const auto backend = make_cudnn_backend(gpu);
  const double usual = rounding_tolerance(gpu.precision);
  int arrays = 0, off = 0;
  double worst = 0;
  std::vector<Deviation> found = check_layers(*backend);
  std::ranges::move(check_partitioned_layers(*backend), std::back_inserter(found));
  for (const Deviation& one : found) {
    ++arrays;
    const double allowed = one.allowance * usual;
    if (one.error <= allowed) {
      worst = std::max(worst, one.error);
      continue;
    }
    ++off;
    fmt::print("{} {}: {}, {}: {:.2g}, allowed {:.2g}\n", precision, device.layout, one.layer, one.array,
               one.error, allowed);
  }
  fmt::print("{} {}: {} of {} arrays within {:.2g}, the worst of them {:.2g}\n", precision, device.layout,
             arrays - off, arrays, usual, worst);
  return off;
}

void check(const Options& options) {
  make_cudnn_backend(options.device.gpu_options());  // reports a missing GPU once
  int off = 0;
  for (const std::string& precision : options.precisions) {
    for (const char* layout : {"nchw", "nhwc"}) {
      DeviceOptions device = options.device;
      device.layout = layout;
      off += check_precision(device, precision);
    }
  }
  if (off > 0) throw OutsideTolerance(fmt::format("check: {} arrays differ by more than rounding", off));
}

}  // namespace

void add_gpu_check(Command app) {
  const Command command = app.add_subcommand(
      "check",
      "Compare every kind of layer with a reference in double precision, and tensor-parallel "
      "layers with whole ones, in both layouts");
  auto options = std::make_shared<Options>();
  command.add_option("--device", options->device.device, "cuda:NUMBER").show_default();
  command.add_option("--precisions", options->precisions, "precisions to check")
      .delimiter(',')
      .one_of(kPrecisions)
      .show_default();
  command.footer("Example: stepcast-gpu check --precisions f32,bf16");
  command.callback([options] { check(*options); });
}

}  // namespace stepcast
