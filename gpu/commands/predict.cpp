#include <fmt/format.h>

#include "gpu/capture/devices.hpp"
#include "gpu/capture/models.hpp"
#include "gpu/capture/step_forecast.hpp"
#include "gpu/commands/commands.hpp"
#include "models/loader.hpp"
#include "scenarios/reader/library.hpp"

namespace stepcast {
namespace {

struct Options {
  TraceChoice traces{"traces", "", "f32", "nchw"};
  std::int64_t batch = 1, micro_batches = 1;
  Parts parts = {};
  std::string device_file = {};
};

/// The forecast of one micro-batch: of whole samples, or of the largest part of each sample if --parts is
/// given.
StepForecast forecast(const Options& options, const std::vector<Trace>& traces) {
  const Model model = model_of(options.traces.model);
  if (options.parts.empty()) return forecast_step(model, traces, options.batch);
  const std::string& named = options.device_file;
  const Device device =
      load_device(data_folder() / "models", named.empty() ? device_file_of(traces[0].device) : named);
  return forecast_part_step(model, traces, options.parts, device, options.batch);
}

void predict(const Options& options) {
  const std::vector<Trace> traces = read_traces(options.traces);
  const StepForecast one = forecast(options, traces);
  const auto count = static_cast<double>(options.micro_batches);
  // Micro-batches add up their gradients and the optimizer runs once, but each traced step includes an
  // update.
  const Seconds step = count * one.step - (count - 1) * one.update;
  fmt::print("{} on {}, {}, batch {}{}: {:.4g} ms a step, {:.4g} samples/s (from batch {}{})\n",
             options.traces.model, traces[0].device, options.traces.precision, options.batch,
             options.micro_batches > 1 ? fmt::format(" x {}", options.micro_batches) : "", 1e3 * step.value,
             count * static_cast<double>(options.batch) / step.value, one.below,
             one.above == one.below ? "" : fmt::format(" and {}", one.above));
  for (const std::string& flag : one.flags) fmt::print("note on the trace: {}\n", flag);
}

}  // namespace

void add_gpu_predict(Command app) {
  const Command command = app.add_subcommand(
      "predict", "Forecast a single GPU's step from captures at other batch sizes (needs no GPU)");
  auto options = std::make_shared<Options>();
  command.add_option("--traces", options->traces.folder, "folder of captures").show_default();
  command.add_option("--model", options->traces.model, "name of the model").required();
  command.add_option("--batch", options->batch, "samples per step").required().range(1, 1 << 20);
  command.add_option("--micro-batches", options->micro_batches, "micro-batches of that size per step")
      .range(1, 1 << 20)
      .show_default();
  command
      .add_option("--parts", options->parts,
                  "devices along each spatial dimension of a sample, such as 2,1: forecasts the largest part")
      .delimiter(',')
      .range(1, 1024);
  command.add_option("--device-file", options->device_file,
                     "with --parts: the GPU's file in models/devices (default: found by the GPU's name)");
  command.add_option("--precision", options->traces.precision, "precision of the captures")
      .one_of(kPrecisions)
      .show_default();
  command.add_option("--layout", options->traces.layout, "layout of the captures")
      .one_of({"nchw", "nhwc"})
      .show_default();
  command.footer("Example: stepcast-gpu predict --traces traces --model resnet50 --batch 48");
  command.callback([options] { predict(*options); });
}

}  // namespace stepcast
