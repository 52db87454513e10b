#include "kernels/timing/capture.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "core/error.hpp"
#include "core/os/files.hpp"
#include "core/text.hpp"
#include "gpu/capture/selection.hpp"
#include "gpu/capture/step_forecast.hpp"
#include "gpu/commands/commands.hpp"
#include "kernels/timing/step_timer.hpp"
#include "models/cost/memory.hpp"
#include "models/layer_times/trace.hpp"
#include "models/layer_times/trace_text.hpp"
#include "models/tables/tables.hpp"

namespace stepcast {

namespace {

struct CaptureCommand {
  std::string model, output;
  DeviceOptions device;
  CaptureOptions capture{.steps = 20, .warm_up = 10};
};

void capture_to_file(CaptureCommand& options) {
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
  const Command command = app.add_subcommand("capture", "Time a model layer by layer and write a trace.");
  auto options = std::make_shared<CaptureCommand>();
  command.add_option("--model", options->model, "Name in models/, or a path that ends in .yaml.")
      .required()
      .type_name("NAME");
  command.add_option("--batch", options->capture.batch, "Samples per step.").required().range(1, 1 << 20);
  add_device_options(command, options->device);
  command
      .add_option("--steps", options->capture.steps,
                  "Number of steps that are timed layer by layer, and of steps that are timed as a whole.")
      .range(3, 1000)
      .show_default();
  command.add_option("--warm-up", options->capture.warm_up, "Number of steps before these.")
      .range(0, 1000)
      .show_default();
  command
      .add_option("-o,--output", options->output,
                  "Trace file. Default: MODEL-bBATCH-PRECISION-LAYOUT-gpu.yaml.")
      .type_name("FILE");
  command.footer("Example: stepcast-gpu capture --model resnet50 --batch 32 --precision tf32 --layout nhwc");
  command.callback([options] { capture_to_file(*options); });
}

namespace {

/// A few networks of each kind: convolutions, attention, recurrence, dense layers and meshes. By the
/// estimates for an H200 they take 1.5 minutes in bf16 and 3.5 in fp32; all networks of models/ would take 8
/// and 86.
const std::vector<std::string> kUsualModels{"resnet50",   "small-cnn", "small-transformer",
                                            "gpt2-small", "nnlo-gru",  "seide-dnn",
                                            "small-mesh", "alexnet",   "vgg16"};

struct CaptureAllCommand {
  std::filesystem::path folder = "traces";
  std::vector<std::string> models;
  std::vector<std::int64_t> batches{16, 32, 64};
  double seconds = 480;
  DeviceOptions device;
  CaptureOptions capture{.steps = 12, .warm_up = 5};
};

/// Numbers of captures by their outcome.
struct CaptureCounts {
  int written = 0, present = 0, left_out = 0, failed = 0, out_of_time = 0;
};

std::filesystem::path file_of(const CaptureAllCommand& options, const std::string& model,
                              std::int64_t batch) {
  return options.folder /
         (trace_name(model, batch, options.device.precision, options.device.layout) + ".yaml");
}

/// File that records that a capture made the GPU unusable, and why; the next call skips that capture.
std::filesystem::path loss_marker(std::filesystem::path file) {
  return file.replace_extension(".lost");
}

/// File that exists while a capture runs, with one line for each attempt. A capture that began twice and did
/// not end hangs or takes too long; later calls skip it.
class AttemptMarker {
 public:
  explicit AttemptMarker(std::filesystem::path file) : file_(file.replace_extension(".begun")) {}
  int times() const {
    if (!std::filesystem::exists(file_)) return 0;
    const std::string text = read_file(file_);
    return std::ranges::count(text, '\n');
  }
  void add() const { append_line(file_, today()); }
  void remove() const {
    std::error_code ignored;
    std::filesystem::remove(file_, ignored);
  }
  const std::filesystem::path& file() const { return file_; }

 private:
  std::filesystem::path file_;
};
constexpr int kMostBeginnings = 2;

/// Checks that the GPU is still usable: after an error such as an illegal access every call of this process
/// fails.
/// @throws RankLost if it is not
void check_gpu_usable(int device, const std::filesystem::path& file, const std::string& why) {
  try {
    free_gpu_memory(device);
  } catch (const std::exception&) {
    write_atomically(loss_marker(file), why + "\n");
    throw RankLost(fmt::format(
        "capture-all: capture {} made the GPU unusable for this process: {}; run the command again to "
        "continue without it",
        file.stem().string(), why));
  }
}

void capture_one(CaptureAllCommand& options, const Model& model, std::int64_t batch, CaptureCounts& counts) {
  const std::string name = trace_name(model.name, batch, options.device.precision, options.device.layout);
  const std::filesystem::path file = file_of(options, model.name, batch);
  if (std::filesystem::exists(file)) {
    ++counts.present;
    return;
  }
  if (std::filesystem::exists(loss_marker(file))) {
    fmt::print("{}: skipped: it made the GPU unusable before, see {}\n", name, loss_marker(file).string());
    ++counts.failed;
    return;
  }
  const AttemptMarker begun(file);
  if (begun.times() >= kMostBeginnings) {
    fmt::print("{}: skipped: it began {} times and did not end; remove {} to try again\n", name,
               begun.times(), begun.file().string());
    ++counts.failed;
    return;
  }
  begun.add();
  options.capture.name = name;
  options.capture.batch = batch;
  options.capture.command =
      fmt::format("stepcast-gpu capture --model {} --batch {}{} --steps {} --warm-up {}", model.name, batch,
                  options.device.command_line(), options.capture.steps, options.capture.warm_up);
  try {
    const Trace trace = capture_on_gpu(options.device.gpu_options(), model, options.capture);
    write_atomically(file, to_yaml(trace));
    begun.remove();
    fmt::print("{}: {:.4g} ms a step\n", name, 1e3 * median(trace.step_seconds).value);
    ++counts.written;
  } catch (const LimitError& error) {
    begun.remove();
    fmt::print("{}: left out: {}\n", name, error.what());
    ++counts.left_out;
  } catch (const std::exception& error) {
    begun.remove();
    fmt::print("{}: failed: {}\n", name, error.what());
    ++counts.failed;
    check_gpu_usable(device_number(options.device.device), file, error.what());
  }
  std::fflush(stdout);
}

struct Capture {
  Model model;
  std::int64_t batch = 0;
};

bool is_captured(const CaptureAllCommand& options, const Capture& one) {
  return std::filesystem::exists(file_of(options, one.model.name, one.batch));
}

/// Steps of one capture: with events, without events, and as a CUDA graph.
int steps_of(const CaptureOptions& capture) {
  return capture.warm_up + 3 * capture.steps + 1;
}

/// Captures in the order of their models' estimated times, so that a time limit leaves out as few as
/// possible.
std::vector<Capture> cheapest_first(const CaptureAllCommand& options, const TimeEstimate& estimate) {
  std::vector<std::pair<double, Model>> models;
  for (const std::string& name : options.models) {
    const Model model = model_of(name);
    double seconds = 0;
    for (const std::int64_t batch : options.batches)
      seconds += estimate.of(model, batch, steps_of(options.capture)).value;
    models.emplace_back(seconds, model);
  }
  std::ranges::stable_sort(models, {}, [](const auto& one) { return one.first; });
  std::vector<Capture> captures;
  for (const auto& [seconds, model] : models) {
    for (const std::int64_t batch : options.batches) captures.push_back({model, batch});
  }
  return captures;
}

/// True if the capture can fit on the GPU, which is asked before the time: what never fits is left out and
/// does not stay "out of time".
bool fits(CaptureAllCommand& options, const Capture& one, CaptureCounts& counts) {
  try {
    options.capture.batch = one.batch;
    check_capture_fits(options.device.gpu_options(), one.model, options.capture);
    return true;
  } catch (const LimitError& error) {
    fmt::print("{}: left out: {}\n",
               trace_name(one.model.name, one.batch, options.device.precision, options.device.layout),
               error.what());
    ++counts.left_out;
    return false;
  }
}

/// Captures all models that fit into the time limit. Files are written atomically, so a second call
/// continues.
void capture_all(CaptureAllCommand& options) {
  const GpuOptions gpu = options.device.gpu_options();
  free_gpu_memory(gpu.device);
  check_writable(options.folder);
  std::vector<std::string> left_out;
  if (options.models.empty()) options.models = kUsualModels;
  if (options.models == std::vector<std::string>{"all"}) options.models = models_for_gpu(left_out);
  for (const std::string& line : left_out) fmt::print("{}\n", line);
  CaptureCounts counts;
  const double begin = now().wall;
  const TimeEstimate estimate(gpu_name(gpu.device), gpu.precision);
  if (!estimate.why_not().empty()) fmt::print("times cannot be estimated: {}\n", estimate.why_not());
  for (const Capture& one : cheapest_first(options, estimate)) {
    if (!is_captured(options, one) && !fits(options, one, counts)) continue;
    const double estimated = estimate.of(one.model, one.batch, steps_of(options.capture)).value;
    if (now().wall - begin + estimated > options.seconds && !is_captured(options, one)) {
      fmt::print("{} with batch {}: not started: about {:.0f} s would exceed --seconds\n", one.model.name,
                 one.batch, estimated);
      ++counts.out_of_time;
      continue;
    }
    capture_one(options, one.model, one.batch, counts);
  }
  fmt::print("written: {}, already there: {}, left out: {}, failed: {}, out of time: {}, in {:.0f} s\n",
             counts.written, counts.present, counts.left_out, counts.failed, counts.out_of_time,
             now().wall - begin);
  if (counts.failed > 0)
    throw std::runtime_error("capture-all: some captures failed; see the messages above");
  if (counts.out_of_time > 0)
    throw LimitError(fmt::format("capture-all: {} captures are left; run the command again to continue",
                                 counts.out_of_time));
}

}  // namespace

void add_gpu_capture_all(Command app) {
  const Command command = app.add_subcommand(
      "capture-all", "Capture several models at several batch sizes, or continue an interrupted call.");
  auto options = std::make_shared<CaptureAllCommand>();
  command.add_option("-o,--output", options->folder, "Folder of the traces.").type_name("DIR").show_default();
  command
      .add_option("--models", options->models,
                  "Names of models, or all for those in models/. Default: some of each kind.")
      .delimiter(',');
  command.add_option("--batches", options->batches, "Samples per step, separated by commas.")
      .delimiter(',')
      .range(1, 1 << 20)
      .show_default();
  command
      .add_option("--seconds", options->seconds,
                  "Time limit [s]: start no capture that is estimated to end later.")
      .range(1, 1 << 20)
      .show_default();
  add_device_options(command, options->device);
  command.footer("Example: stepcast-gpu capture-all --precision bf16 --layout nhwc -o traces");
  command.callback([options] { capture_all(*options); });
}

}  // namespace stepcast
