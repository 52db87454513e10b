#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>

#include "core/error.hpp"
#include "gpu/commands.hpp"
#include "gpu/devices.hpp"
#include "gpu/estimate.hpp"
#include "gpu/models.hpp"
#include "kernels/gpu_capture.hpp"
#include "kernels/stopwatch.hpp"
#include "models/memory.hpp"
#include "models/trace_text.hpp"
#include "models/trace_times.hpp"
#include "report/atomic_file.hpp"

namespace stepcast {
namespace {

struct Options {
  std::filesystem::path folder = "traces";
  std::vector<std::string> models;
  std::vector<std::int64_t> batches{16, 32, 64};
  double seconds = 480;
  DeviceOptions device;
  CaptureOptions capture{.steps = 12, .warm_up = 5};
};

/// What became of one model and batch.
struct Outcome {
  int written = 0, there = 0, failed = 0, late = 0;
};

std::filesystem::path file_of(const Options& options, const std::string& model, std::int64_t batch) {
  return options.folder /
         (trace_name(model, batch, options.device.precision, options.device.layout) + ".yaml");
}

/// Where it is written what a capture was lost with; who calls again goes on without it.
std::filesystem::path loss_of(std::filesystem::path file) {
  return file.replace_extension(".lost");
}

/// After an illegal access, say, every call of this process fails, whatever it is for.
/// @throws RankLost
void check_not_lost(int device, const std::filesystem::path& file, const std::string& why) {
  try {
    free_gpu_memory(device);
  } catch (const std::exception&) {
    write_atomically(loss_of(file), why + "\n");
    throw RankLost(
        fmt::format("capture-all: the GPU is lost to this process since {}: {}; call again to go on "
                    "without it",
                    file.stem().string(), why));
  }
}

void capture_one(Options& options, const Model& model, std::int64_t batch, Outcome& outcome) {
  const std::string name = trace_name(model.name, batch, options.device.precision, options.device.layout);
  const std::filesystem::path file = file_of(options, model.name, batch);
  if (std::filesystem::exists(file)) {
    ++outcome.there;
    return;
  }
  if (std::filesystem::exists(loss_of(file))) {
    fmt::print("{}: not tried again: {} says what the GPU was lost with\n", name, loss_of(file).string());
    ++outcome.failed;
    return;
  }
  options.capture.name = name;
  options.capture.batch = batch;
  options.capture.command =
      fmt::format("stepcast-gpu capture --model {} --batch {}{} --steps {} --warm-up {}", model.name, batch,
                  options.device.text(), options.capture.steps, options.capture.warm_up);
  try {
    const Trace trace = capture_on_gpu(options.device.read(), model, options.capture);
    write_atomically(file, to_yaml(trace));
    fmt::print("{}: {:.4g} ms a step\n", name, 1e3 * median(trace.step_seconds).value);
    ++outcome.written;
  } catch (const LimitError& error) {
    fmt::print("{}: left out: {}\n", name, error.what());
  } catch (const std::exception& error) {
    fmt::print("{}: failed: {}\n", name, error.what());
    ++outcome.failed;
    check_not_lost(device_number(options.device.device), file, error.what());
  }
  std::fflush(stdout);
}

struct Capture {
  Model model;
  std::int64_t batch = 0;
};

bool is_there(const Options& options, const Capture& one) {
  return std::filesystem::exists(file_of(options, one.model.name, one.batch));
}

/// Steps with events, without, and as a graph.
int steps_of(const CaptureOptions& capture) {
  return capture.warm_up + 3 * capture.steps + 1;
}

/// Models that take least first, so that what is left out is little.
std::vector<Capture> cheapest_first(const Options& options, const Estimate& estimate) {
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

/// What does not fit is tried no further; each file is there as a whole or not at all, so a second call goes
/// on.
void capture_all(Options& options) {
  const GpuOptions gpu = options.device.read();
  free_gpu_memory(gpu.device);
  check_writable(options.folder);
  std::vector<std::string> left_out;
  if (options.models.empty()) options.models = models_for_gpu(left_out);
  for (const std::string& line : left_out) fmt::print("{}\n", line);
  Outcome outcome;
  const double begin = now().wall;
  const Estimate estimate(gpu_name(gpu.device));
  if (!estimate.why_not().empty()) fmt::print("no estimates: {}\n", estimate.why_not());
  for (const Capture& one : cheapest_first(options, estimate)) {
    const double takes = estimate.of(one.model, one.batch, steps_of(options.capture)).value;
    if (now().wall - begin + takes > options.seconds && !is_there(options, one)) {
      fmt::print("{} with batch {}: out of time: about {:.0f} s\n", one.model.name, one.batch, takes);
      ++outcome.late;
      continue;
    }
    capture_one(options, one.model, one.batch, outcome);
  }
  fmt::print("written: {}, already there: {}, failed: {}, out of time: {}, in {:.0f} s\n", outcome.written,
             outcome.there, outcome.failed, outcome.late, now().wall - begin);
  if (outcome.failed > 0) throw std::runtime_error("capture-all: some captures failed (above)");
  if (outcome.late > 0)
    throw LimitError(fmt::format("capture-all: {} captures are left; call again to go on", outcome.late));
}

}  // namespace

void add_gpu_capture_all(CLI::App& app) {
  auto* command = app.add_subcommand(
      "capture-all", "Capture every model at several batch sizes, going on where it was interrupted");
  auto options = std::make_shared<Options>();
  command->add_option("-o,--output", options->folder, "folder of the traces")
      ->type_name("DIR")
      ->capture_default_str();
  command->add_option("--models", options->models, "these only (default: all in models/)")->delimiter(',');
  command->add_option("--batches", options->batches, "samples a step")
      ->delimiter(',')
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  command
      ->add_option("--seconds", options->seconds,
                   "start nothing that would end later than this, as estimated")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  add_device_options(*command, options->device);
  command->footer("Example: stepcast-gpu capture-all --precision bf16 --layout nhwc -o traces");
  command->callback([options] { capture_all(*options); });
}

}  // namespace stepcast
