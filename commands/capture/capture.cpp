#include "kernels/timing/capture.hpp"

#include <fmt/format.h>

#include <chrono>
#include <iostream>
#include <memory>
#include <optional>

#include "commands/commands.hpp"
#include "core/error.hpp"
#include "core/os/files.hpp"
#include "kernels/network/backend.hpp"
#include "kernels/onednn/backend.hpp"
#include "kernels/timing/compression_timing.hpp"
#include "models/layer_times/compression_times.hpp"
#include "models/layer_times/derived_trace.hpp"
#include "models/layer_times/trace_text.hpp"
#include "models/tables/tables.hpp"
#include "report/text/display_text.hpp"
#include "report/text/narrow_tables.hpp"
#include "report/text/progress.hpp"
#include "scenarios/reader/library.hpp"

namespace stepcast {

namespace {

struct CaptureCommandOptions {
  std::string model, device = "cpu", output, precision = "f32", layout = "nchw";
  bool steps_given = false;
  CaptureOptions capture;
};

std::string command_of(const CaptureCommandOptions& options) {
  return fmt::format(
      "stepcast capture --model {} --batch {} --device {} --threads {} --steps {} --warm-up {}",
      options.model, options.capture.batch, options.device, options.capture.threads, options.capture.steps,
      options.capture.warm_up);
}

/// The equivalent command line of stepcast-gpu, which has its own defaults for steps.
std::vector<std::string> gpu_arguments(const CaptureCommandOptions& options) {
  std::vector<std::string> arguments{
      "capture",     "--model",      options.model, "--batch",         std::to_string(options.capture.batch),
      "--device",    options.device, "--precision", options.precision, "--layout",
      options.layout};
  if (options.steps_given) {
    arguments.insert(arguments.end(), {"--steps", std::to_string(options.capture.steps), "--warm-up",
                                       std::to_string(options.capture.warm_up)});
  }
  if (!options.output.empty()) arguments.insert(arguments.end(), {"-o", options.output});
  return arguments;
}

/// Checks the name of the trace file before minutes of measuring: it must be writable, and end in .yaml so
/// that scenarios can name it.
void check_output(const std::filesystem::path& file) {
  if (file.extension() != ".yaml")
    throw InputError(fmt::format("--output: expected a name ending in .yaml, got \"{}\"", file.string()));
  std::error_code error;
  if (std::filesystem::is_directory(file, error))
    throw InputError(fmt::format("--output: {} is a folder, not a file", file.string()));
  check_writable(file.has_parent_path() ? file.parent_path() : ".");
}

/// Captures a trace and shows progress on standard error.
Trace captured(Backend& backend, const Model& model, CaptureOptions options) {
  const auto started = std::chrono::steady_clock::now();
  Progress progress(std::cerr, progress_style());
  options.progress = [&](double share, Seconds left) {
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - started;
    progress.update(fmt::format("capture: {:.0f} %, {} left", 100 * share, human(left)), {elapsed.count()});
  };
  return capture(backend, model, options);
}

void capture_to_file(CaptureCommandOptions& options) {
  if (options.device != "cpu" && !options.device.starts_with("cuda:"))
    throw InputError(fmt::format("--device: expected cpu or cuda:NUMBER, got \"{}\"", options.device));
  if (options.device != "cpu") run_gpu_program(options.device, gpu_arguments(options));
  if (options.precision != "f32" || options.layout != "nchw") {
    throw InputError("--precision and --layout: only valid with --device cuda:NUMBER; the CPU uses f32");
  }
  Library library;
  const YamlNode name = command_line_name(options.model);
  const Model& model = library.model(YamlValue(name, "--model"));
  const std::filesystem::path file = options.output.empty()
                                         ? fmt::format("{}-b{}-cpu.yaml", model.name, options.capture.batch)
                                         : options.output;
  check_output(file);
  options.capture.name = file.stem().string();
  options.capture.command = command_of(options);
  const auto backend = make_onednn_backend();
  const Trace trace = captured(*backend, model, options.capture);
  write_atomically(file, to_yaml(trace));
  fmt::print("{}written: {}\n", with_narrow_tables(trace_table(trace, &model), terminal_width()),
             file.string());
}

}  // namespace

void add_capture(Command app) {
  const Command command = app.add_subcommand(
      "capture", "Time the kernels of a model on this machine, layer by layer, and write a trace.");
  auto options = std::make_shared<CaptureCommandOptions>();
  command.add_option("--model", options->model, "Name in models/, or a path that ends in .yaml.")
      .required()
      .type_name("NAME");
  command.add_option("--batch", options->capture.batch, "Batch size: samples per step.")
      .required()
      .range(1, 1 << 20);
  command.add_option("--device", options->device, "Device: cpu, or cuda:NUMBER if stepcast-gpu was built.")
      .type_name("NAME")
      .show_default();
  command.add_option("--precision", options->precision, "Precision on a GPU: f32, tf32, f16 or bf16.")
      .type_name("NAME")
      .show_default();
  command.add_option("--layout", options->layout, "Memory layout of images on a GPU: nchw or nhwc.")
      .type_name("NAME")
      .show_default();
  command.add_option("--threads", options->capture.threads, "Number of threads that the kernels use.")
      .range(1, 4096)
      .show_default();
  const Option steps =
      command
          .add_option(
              "--steps", options->capture.steps,
              "Number of steps that are timed layer by layer. The same number of steps runs without timers "
              "inside, as a check.")
          .range(3, 1000)
          .show_default();
  const Option warm_up =
      command
          .add_option("--warm-up", options->capture.warm_up, "Number of untimed steps before the timed ones.")
          .range(0, 1000)
          .show_default();
  command
      .add_option("-o,--output", options->output,
                  "Trace file, or - for standard output. Default: MODEL-bBATCH-cpu.yaml.")
      .type_name("FILE");
  command.footer("Example: stepcast capture --model small-cnn --batch 32 -o small-cnn-b32-cpu.yaml");
  command.callback_with_file(
      [options, steps, warm_up] {
        options->steps_given = steps.given() || warm_up.given();
        capture_to_file(*options);
      },
      options->output, "captured");
}

void add_capture_compression(Command app) {
  const Command command = app.add_subcommand(
      "capture-compression",
      "Time the kernels that compress gradients on this machine, and write their times to a file.");
  auto file = std::make_shared<std::filesystem::path>("compression-cpu.yaml");
  auto options = std::make_shared<CompressionCapture>();
  command.add_option("--repeats", options->repeats, "Number of runs of each kernel.")
      .range(3, 1000)
      .show_default();
  command.add_option("-o,--output", *file, "File of compression times.").type_name("FILE").show_default();
  command.footer("Example: stepcast capture-compression -o models/compression/cpu.yaml");
  command.callback([file, options] {
    check_writable(file->has_parent_path() ? file->parent_path() : ".");
    options->name = file->stem().string();
    options->command = fmt::format("stepcast capture-compression --repeats {}", options->repeats);
    const CompressionTrace trace = capture_compression(*options);
    write_atomically(*file, to_yaml(trace));
    fmt::print("{}written: {}\n", compression_table(trace), file->string());
  });
}

namespace {

struct DeriveOptions {
  std::string model, device, noise, output;
  std::string precision = "f32", attention = "eager", gelu = "fused", optimizer = "momentum",
              update = "foreach", layout = "nchw", cross_entropy = "log_softmax", elementwise = "eager",
              gradient_sums = "separate";
  bool autocast = false;
  std::int64_t batch = 1;

  KernelChoice choice() const {
    const YamlNode kernels = parse_yaml(
        fmt::format("{{precision: {}, attention: {}, gelu: {}, optimizer: {}, update: {}, layout: {}, "
                    "cross_entropy: {}, elementwise: {}, gradient_sums: {}, autocast: {}}}",
                    precision, attention, gelu, optimizer, update, layout, cross_entropy, elementwise,
                    gradient_sums, autocast),
        "command line");
    return read_kernel_choice(YamlValue(kernels, "kernels"));
  }
};

void derive_to_file(const DeriveOptions& options) {
  Library library;
  const YamlNode name = command_line_name(options.model);
  const Model& model = library.model(YamlValue(name, "--model"));
  const Device device = with_kernels(library.device(options.device), options.choice());
  std::optional<Trace> captured;
  if (!options.noise.empty()) captured = read_trace(YamlValue(read_yaml(options.noise), ""));
  Trace trace =
      derive(model, options.batch, device, library.calibration(device), {captured ? &*captured : nullptr, 8});
  const std::filesystem::path file =
      options.output.empty() ? fmt::format("{}-b{}-{}.yaml", model.name, options.batch, device.name)
                             : options.output;
  trace.name = file.stem().string();
  check_writable(file.has_parent_path() ? file.parent_path() : ".");
  write_atomically(file, to_yaml(trace));
  fmt::print("{}written: {}\n", with_narrow_tables(trace_table(trace, &model), terminal_width()),
             file.string());
}

void add_fused_kernels(const Command& command, DeriveOptions* options) {
  command
      .add_option("--elementwise", options->elementwise,
                  "fused: RMS norm, SwiGLU and rotations in one kernel each, as torch.compile makes them.")
      .one_of(elementwise_words().names())
      .show_default();
  command
      .add_option("--gradient-sums", options->gradient_sums,
                  "fused: products add gradients of half precision to fp32 ones, as in Transformer Engine.")
      .one_of(gradient_sums_words().names())
      .show_default();
}

/// Options that choose the kernels, as the scenario key `kernels` does.
void add_kernel_options(const Command& command, DeriveOptions* options) {
  command
      .add_option("--precision", options->precision,
                  "Precision of products. The device file lists those that the device has.")
      .one_of(precision_words().names())
      .show_default();
  command
      .add_option(
          "--attention", options->attention,
          "Kernels of attention: one for each operation; scale, mask and softmax in one; or one that keeps "
          "the scores on the chip.")
      .one_of(attention_words().names())
      .show_default();
  command
      .add_option("--gelu", options->gelu,
                  "fused: GELU in one kernel; eager: its tanh form with a kernel for each operation; "
                  "eager_erf: its exact "
                  "form, likewise.")
      .one_of(gelu_words().names())
      .show_default();
  command.add_option("--optimizer", options->optimizer, "Optimizer of the update.")
      .one_of(optimizer_words().names())
      .show_default();
  command
      .add_option(
          "--update", options->update,
          "Kernels of the optimizer: one for each operation; one for each operation and tensor; or one for "
          "all operations.")
      .one_of(update_words().names())
      .show_default();
  command.add_option("--layout", options->layout, "Layout of activations: channels first or last.")
      .one_of(layout_words().names())
      .show_default();
  command
      .add_option("--cross-entropy", options->cross_entropy,
                  "Kernels of softmax with cross entropy: PyTorch's; Megatron-LM's on fp32 logits; or one.")
      .one_of(cross_entropy_words().names())
      .show_default();
  add_fused_kernels(command, options);
  command.add_flag("--autocast", options->autocast,
                   "With f16 and bf16: PyTorch's autocast, with its casts, in place of 2 bytes everywhere.");
}

}  // namespace

void add_derive(Command app) {
  const Command command = app.add_subcommand(
      "derive", "Estimate the trace of a model on a device that is not available, with a roofline model.");
  auto options = std::make_shared<DeriveOptions>();
  command.add_option("--model", options->model, "Name in models/, or a path that ends in .yaml.")
      .required()
      .type_name("NAME");
  command.add_option("--batch", options->batch, "Batch size: samples per step.").required().range(1, 1 << 20);
  command.add_option("--device", options->device, "Name in models/devices/, or a path that ends in .yaml.")
      .type_name("NAME")
      .required();
  command
      .add_option("--noise", options->noise,
                  "Captured trace whose relative variation between steps is applied to the derived times. "
                  "Default: no variation.")
      .type_name("FILE");
  add_kernel_options(command, options.get());
  command
      .add_option("-o,--output", options->output,
                  "Trace file, or - for standard output. Default: MODEL-bBATCH-DEVICE.yaml.")
      .type_name("FILE");
  command.footer(
      "Example: stepcast derive --model resnet50 --batch 32 --device k80 -o resnet50-b32-k80.yaml\n"
      "The model and its errors: docs/explanation/derived-traces.md");
  command.callback_with_file([options] { derive_to_file(*options); }, options->output, "derived");
}

}  // namespace stepcast
