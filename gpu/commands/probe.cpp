#include <fmt/format.h>

#include "core/os/atomic_file.hpp"
#include "gpu/capture/devices.hpp"
#include "gpu/capture/models.hpp"
#include "gpu/commands/commands.hpp"
#include "kernels/timing/capture.hpp"
#include "kernels/timing/capture_flags.hpp"
#include "models/layer_times/trace.hpp"
#include "models/layer_times/trace_text.hpp"

namespace stepcast {
namespace {

struct Options {
  std::filesystem::path file = "gpu-probes.yaml";
  std::string model = "resnet50";
  std::int64_t batch = 32;
  DeviceOptions device;
};

std::string to_yaml(const GpuProbes& probes, const Options& options) {
  std::string text =
      fmt::format("device: {}\ndate: {}\ncommand: {}\n", quoted(probes.device), quoted(today()),
                  quoted(fmt::format("stepcast-gpu probe --model {} --batch {}{}", options.model,
                                     options.batch, options.device.command_line())));
  text += "notes:\n";
  text += fmt::format("  - {}\n  - {}\n", quoted("before: " + probes.state_before),
                      quoted("after: " + probes.state_after));
  for (const std::string& note : probes.notes) text += fmt::format("  - {}\n", quoted(note));
  text += "probes:\n";
  for (const GpuProbe& probe : probes.probes) {
    text += fmt::format("  - {{name: {}, bytes: {:.0f}, seconds: {}", quoted(probe.name), probe.bytes.value,
                        numbers(probe.seconds));
    text += probe.floor.value > 0 ? fmt::format(", floor: {:.4g}}}\n", probe.floor.value) : "}\n";
  }
  return text;
}

void probe(const Options& options) {
  const GpuOptions gpu = options.device.gpu_options();
  free_gpu_memory(gpu.device);
  check_writable(options.file.has_parent_path() ? options.file.parent_path() : ".");
  const GpuProbes probes = probe_gpu(gpu, model_of(options.model), options.batch);
  write_atomically(options.file, to_yaml(probes, options));
  for (const GpuProbe& one : probes.probes) {
    const double seconds = median(one.seconds).value;
    const std::string rate = one.bytes.value > 0 && seconds > 0
                                 ? fmt::format(", {:.4g} GB/s", one.bytes.value / seconds / 1e9)
                                 : "";
    const std::string share =
        one.floor.value > 0 && seconds > 0
            ? fmt::format(", {:.0f} % of the memory's bandwidth", 100 * one.floor.value / seconds)
            : "";
    fmt::print("{:60} {:12.0f} B {:10.4g} us{}{}\n", one.name, one.bytes.value, 1e6 * seconds, rate, share);
  }
  for (const std::string& note : probes.notes) fmt::print("note: {}\n", note);
  fmt::print("written: {}\n", options.file.string());
}

}  // namespace

void add_gpu_probe(Command app) {
  const Command command = app.add_subcommand(
      "probe",
      "Measure launches, copies, the project's kernels against the bandwidth of the memory, an "
      "all-reduce of one rank, and how much copies and reductions slow a step down");
  auto options = std::make_shared<Options>();
  command.add_option("--model", options->model, "model of the steps").show_default();
  command.add_option("--batch", options->batch, "samples per step").range(1, 1 << 20).show_default();
  add_device_options(command, options->device);
  command.add_option("-o,--output", options->file, "file to write").type_name("FILE").show_default();
  command.footer("Example: stepcast-gpu probe -o gpu-probes.yaml");
  command.callback([options] { probe(*options); });
}

}  // namespace stepcast
