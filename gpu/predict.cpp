#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "gpu/commands.hpp"
#include "gpu/cut_forecast.hpp"
#include "gpu/devices.hpp"
#include "gpu/interpolate.hpp"
#include "gpu/models.hpp"
#include "gpu/trace_folder.hpp"
#include "models/library.hpp"
#include "scenarios/data_files.hpp"

namespace stepcast {
namespace {

struct Options {
  TraceChoice traces{"traces", "", "f32", "nchw"};
  std::int64_t batch = 1, micro_batches = 1;
  Parts parts = {};
  std::string device_file = {};
};

/// Of a part of every sample, where that is asked for.
std::vector<Trace> captures(const Options& options) {
  const std::vector<Trace> traces = read_traces(options.traces);
  if (options.parts.empty()) return traces;
  const std::string& named = options.device_file;
  const Device device =
      load_device(data_folder() / "models", named.empty() ? device_file_of(traces[0].device) : named);
  return traces_of_part(traces, model_of(options.traces.model), options.parts, device);
}

void predict(const Options& options) {
  const std::vector<Trace> traces = captures(options);
  const StepForecast one = forecast_step(traces, options.batch);
  const auto count = static_cast<double>(options.micro_batches);
  // Gradients of small batches are added up; the optimizer runs once, which a trace of whole steps has in
  // each.
  const Seconds step = count * one.step - (count - 1) * one.update;
  fmt::print("{} on {}, {}, batch {}{}: {:.4g} ms a step, {:.4g} samples/s (from batch {}{})\n",
             options.traces.model, traces[0].device, options.traces.precision, options.batch,
             options.micro_batches > 1 ? fmt::format(" x {}", options.micro_batches) : "", 1e3 * step.value,
             count * static_cast<double>(options.batch) / step.value, one.below,
             one.above == one.below ? "" : fmt::format(" and {}", one.above));
}

}  // namespace

void add_gpu_predict(CLI::App& app) {
  auto* command = app.add_subcommand(
      "predict", "Forecast a single GPU's step from captures at other batch sizes (needs no GPU)");
  auto options = std::make_shared<Options>();
  command->add_option("--traces", options->traces.folder, "folder of captures")->capture_default_str();
  command->add_option("--model", options->traces.model, "name of the model")->required();
  command->add_option("--batch", options->batch, "samples")->required()->check(CLI::Range(1, 1 << 20));
  command->add_option("--micro-batches", options->micro_batches, "small batches of that size a step")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  command
      ->add_option("--parts", options->parts,
                   "devices along each dimension of a sample, such as 2,1: forecast the largest part")
      ->delimiter(',')
      ->check(CLI::Range(1, 1024));
  command->add_option("--device-file", options->device_file,
                      "of --parts: what models/devices says of the GPU (default: by its name)");
  command->add_option("--precision", options->traces.precision, "of the captures")
      ->check(CLI::IsMember(kPrecisions))
      ->capture_default_str();
  command->add_option("--layout", options->traces.layout, "of the captures")
      ->check(CLI::IsMember({"nchw", "nhwc"}))
      ->capture_default_str();
  command->footer("Example: stepcast-gpu predict --traces traces --model resnet50 --batch 48");
  command->callback([options] { predict(*options); });
}

}  // namespace stepcast
