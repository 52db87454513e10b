#include "kernels/timing/capture.hpp"

#include <fmt/format.h>

#include "core/os/atomic_file.hpp"
#include "gpu/capture/devices.hpp"
#include "gpu/capture/models.hpp"
#include "gpu/commands/commands.hpp"
#include "models/layer_times/trace_text.hpp"
#include "models/tables/tables.hpp"

namespace stepcast {
namespace {

struct Options {
  std::string model, output;
  DeviceOptions device;
  CaptureOptions capture{.steps = 20, .warm_up = 10};
};

void capture_to_file(Options& options) {
  const GpuOptions gpu = options.device.gpu_options();
  free_gpu_memory(gpu.device);  // reports a missing GPU before any other error
  const Model model = model_of(options.model);
  const std::filesystem::path file =
      options.output.empty()
          ? trace_name(model.name, options.capture.batch, options.device.precision, options.device.layout) +
                ".yaml"
          : options.output;
  check_writable(file.has_parent_path() ? file.parent_path() : ".");
  options.capture.name = file.stem().string();
  options.capture.command = fmt::format(
      "stepcast-gpu capture --model {} --batch {}{} --steps {} --warm-up {}", options.model,
      options.capture.batch, options.device.command_line(), options.capture.steps, options.capture.warm_up);
  const Trace trace = capture_on_gpu(gpu, model, options.capture);
  write_atomically(file, to_yaml(trace));
  fmt::print("{}written: {}\n", trace_table(trace, &model), file.string());
}

}  // namespace

void add_gpu_capture(Command app) {
  const Command command = app.add_subcommand("capture", "Time a model layer by layer and write a trace");
  auto options = std::make_shared<Options>();
  command.add_option("--model", options->model, "a name in models/ or a path ending in .yaml").required();
  command.add_option("--batch", options->capture.batch, "samples a step").required().range(1, 1 << 20);
  add_device_options(command, options->device);
  command.add_option("--steps", options->capture.steps, "timed steps, and as many untimed ones")
      .range(3, 1000)
      .show_default();
  command.add_option("--warm-up", options->capture.warm_up, "steps before them")
      .range(0, 1000)
      .show_default();
  command
      .add_option("-o,--output", options->output,
                  "trace file (default MODEL-bBATCH-PRECISION-LAYOUT-gpu.yaml)")
      .type_name("FILE");
  command.footer("Example: stepcast-gpu capture --model resnet50 --batch 32 --precision tf32 --layout nhwc");
  command.callback([options] { capture_to_file(*options); });
}

}  // namespace stepcast
