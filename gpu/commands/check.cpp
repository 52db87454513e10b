#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <span>

#include "core/error.hpp"
#include "core/os/files.hpp"
#include "gpu/capture/selection.hpp"
#include "gpu/check/check_layers.hpp"
#include "gpu/commands/commands.hpp"
#include "kernels/timing/capture.hpp"

namespace stepcast {

namespace {

struct CheckCommand {
  DeviceOptions device;
  std::vector<std::string> precisions = kPrecisions;
};

/// Counts of the arrays that were checked at one precision in one layout.
struct CheckedArrays {
  std::string where;  ///< precision and layout
  double usual = 0;   ///< tolerance
  int arrays = 0, off = 0;
  double worst = 0;  ///< of the arrays within the tolerance
};

/// Adds the arrays of a layer and prints them. Nothing stays in a buffer, so that a process which a time
/// limit ends leaves the rows of all layers before the one that took too long.
void add_layer(CheckedArrays& all, std::span<const Deviation> layer) {
  double largest = 0;
  for (const Deviation& one : layer) {
    const double allowed = one.allowance * all.usual;
    ++all.arrays;
    largest = std::max(largest, one.error);
    if (one.error <= allowed) {
      all.worst = std::max(all.worst, one.error);
      continue;
    }
    ++all.off;
    fmt::print("{}: {}, {}: {:.2g}, allowed {:.2g}\n", all.where, one.layer, one.array, one.error, allowed);
  }
  fmt::print("{}: {}: {} arrays, largest deviation {:.2g}\n", all.where, layer.front().layer, layer.size(),
             largest);
  std::fflush(stdout);
}

/// @return number of arrays outside the tolerance
int check_precision(DeviceOptions device, const std::string& precision) {
  device.precision = precision;
  const GpuOptions gpu = device.gpu_options();
  const auto backend = make_cudnn_backend(gpu);
  CheckedArrays all{fmt::format("{} {}", precision, device.layout), rounding_tolerance(gpu.precision)};
  check_layers(*backend, [&all](std::span<const Deviation> layer) { add_layer(all, layer); });
  add_layer(all, check_partitioned_layers(*backend));
  fmt::print("{}: {} of {} arrays within {:.2g}, the worst of them {:.2g}\n", all.where, all.arrays - all.off,
             all.arrays, all.usual, all.worst);
  std::fflush(stdout);
  return all.off;
}

void check(const CheckCommand& options) {
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
      "layers with whole layers, in both layouts.");
  auto options = std::make_shared<CheckCommand>();
  command.add_option("--device", options->device.device, "GPU: cuda:NUMBER.")
      .type_name("NAME")
      .show_default();
  command.add_option("--precisions", options->precisions, "Precisions to check.")
      .delimiter(',')
      .one_of(kPrecisions)
      .show_default();
  command.footer("Example: stepcast-gpu check --precisions f32,bf16");
  command.callback([options] { check(*options); });
}

}  // namespace stepcast
