#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/error.hpp"
#include "core/os/files.hpp"
#include "gpu/capture/selection.hpp"
#include "gpu/capture/step_forecast.hpp"
#include "gpu/check/check_layers.hpp"
#include "gpu/commands/commands.hpp"
#include "kernels/timing/capture.hpp"
#include "kernels/timing/step_timer.hpp"
#include "models/layer_times/trace.hpp"
#include "report/results/results.hpp"

namespace stepcast {

namespace {

struct ValidateCommand {
  std::filesystem::path traces = "traces", folder = "validation";
  std::vector<std::string> models;
  std::vector<std::int64_t> batches{24, 48};
  double tolerance = 0.03, seconds = 240;
  DeviceOptions device;
  CaptureOptions steps{.steps = 20, .warm_up = 10};
};

struct Point {
  std::string model;
  std::int64_t batch = 0;
  StepForecast forecast;
  double measured = 0;
  std::string failure = {};

  double error() const { return forecast.step.value / measured - 1; }
};

std::vector<Point> forecasts(const ValidateCommand& options) {
  TraceChoice choice{options.traces, "", options.device.precision, options.device.layout};
  std::vector<Point> points;
  for (const std::string& model : options.models.empty() ? models_in(choice) : options.models) {
    choice.model = model;
    const std::vector<Trace> traces = read_traces(choice);
    for (const std::int64_t batch : options.batches) {
      try {
        points.push_back(
            {.model = model, .batch = batch, .forecast = forecast_step(model_of(model), traces, batch)});
      } catch (const InputError& error) {
        fmt::print("{}: left out: {}\n", model, error.what());
      }
    }
  }
  if (points.empty()) {
    throw InputError(fmt::format(
        "{}: no model has captures at batch sizes below and above those of --batches; run capture-all first",
        options.traces.string()));
  }
  return points;
}

std::string predicted_csv(const ValidateCommand& options, const std::vector<Point>& points) {
  std::string text = "model,precision,layout,batch,batch_below,batch_above,predicted_step_seconds\n";
  for (const Point& p : points) {
    text +=
        fmt::format("{},{},{},{},{},{},{:.6g}\n", p.model, options.device.precision, options.device.layout,
                    p.batch, p.forecast.below, p.forecast.above, p.forecast.step.value);
  }
  return text;
}

void measure(const ValidateCommand& options, Point& point) {
  try {
    CaptureOptions steps = options.steps;
    steps.batch = point.batch;
    const std::vector<double> seconds =
        time_steps_on_gpu(options.device.gpu_options(), model_of(point.model), steps);
    point.measured = median(seconds).value;
  } catch (const std::exception& error) {
    point.failure = error.what();
  }
}

std::string measured_csv(const ValidateCommand& options, const std::vector<Point>& points) {
  std::string text =
      "model,precision,layout,batch,predicted_step_seconds,measured_step_seconds,error,samples_per_second,"
      "flagged\n";
  for (const Point& p : points) {
    if (p.measured <= 0) continue;
    text += fmt::format("{},{},{},{},{:.6g},{:.6g},{:.5f},{:.6g},{}\n", p.model, options.device.precision,
                        options.device.layout, p.batch, p.forecast.step.value, p.measured, p.error(),
                        p.batch / p.measured, p.forecast.flags.empty() ? 0 : 1);
  }
  return text;
}

/// Reads measurements of an earlier call, with the forecasts that were written before them.
void take_known(const std::filesystem::path& file, std::vector<Point>& points) {
  if (!std::filesystem::exists(file)) return;
  for (const Row& row : read_csv(read_file(file), file.string()).rows) {
    for (Point& point : points) {
      if (point.model != row.text("model") || point.batch != row.number("batch").value_or(0)) continue;
      point.forecast.step.value = row.number("predicted_step_seconds").value_or(0);
      point.measured = row.number("measured_step_seconds").value_or(0);
    }
  }
}

/// Words for a point outside the tolerance. A flagged trace explains it: where the GPU waits for the host, a
/// step takes as long as the host does, which differs from minute to minute.
const char* outside_words(const Point& point) {
  return point.forecast.flags.empty() ? "  OUTSIDE" : "  OUTSIDE, from a flagged trace";
}

/// Prints all points. @return the number of points outside the tolerance
int print(const ValidateCommand& options, const std::vector<Point>& points) {
  int outside = 0;
  for (const Point& p : points) {
    if (p.measured <= 0) {
      fmt::print("{:20} batch {:5}: {}\n", p.model, p.batch, p.failure);
      continue;
    }
    const bool off = std::abs(p.error()) > options.tolerance;
    outside += off ? 1 : 0;
    fmt::print("{:20} batch {:5}: predicted {:9.4g} ms, measured {:9.4g} ms, {:+6.2f} %{}\n", p.model,
               p.batch, 1e3 * p.forecast.step.value, 1e3 * p.measured, 100 * p.error(),
               off ? outside_words(p) : "");
  }
  return outside;
}

void validate(const ValidateCommand& options) {
  free_gpu_memory(options.device.gpu_options().device);
  check_writable(options.folder);
  std::vector<Point> points = forecasts(options);
  const std::string end = fmt::format("-{}-{}.csv", options.device.precision, options.device.layout);
  take_known(options.folder / ("measured" + end), points);
  write_atomically(options.folder / ("predicted" + end),
                   predicted_csv(options, points));  // before any measurement
  const GpuOptions gpu = options.device.gpu_options();
  const TimeEstimate estimate(gpu_name(gpu.device), gpu.precision);
  const double begin = now().wall;
  int late = 0;
  for (Point& point : points) {
    if (point.measured > 0) continue;
    const int steps = options.steps.warm_up + options.steps.steps;
    const double estimated = estimate.of(model_of(point.model), point.batch, steps).value;
    if (now().wall - begin + estimated > options.seconds) {
      point.failure = fmt::format("not run: about {:.0f} s would exceed --seconds", estimated);
      ++late;
      continue;
    }
    measure(options, point);
    write_atomically(options.folder / ("measured" + end), measured_csv(options, points));
  }
  const int outside = print(options, points);
  const auto missing =
      std::count_if(points.begin(), points.end(), [](const Point& p) { return p.measured <= 0; }) - late;
  if (outside > 0 || missing > 0) {
    throw OutsideTolerance(fmt::format("validate: {} of {} points differ by more than {:g} %, {} did not run",
                                       outside, points.size(), 100 * options.tolerance, missing));
  }
  if (late > 0)
    throw LimitError(fmt::format("validate: {} points are left; run the command again to continue", late));
}

}  // namespace

void add_gpu_validate(Command app) {
  const Command command = app.add_subcommand(
      "validate",
      "Forecast steps at batch sizes that were not captured, write the forecasts, then measure the steps.");
  auto options = std::make_shared<ValidateCommand>();
  command.add_option("--traces", options->traces, "Folder of captured traces.").show_default();
  command.add_option("--models", options->models, "Names of models. Default: all that have captured traces.")
      .delimiter(',');
  command.add_option("--batches", options->batches, "Samples per step, separated by commas.")
      .delimiter(',')
      .range(1, 1 << 20)
      .show_default();
  command.add_option("--tolerance", options->tolerance, "Largest allowed relative error of a step.")
      .range(0.0, 1.0)
      .show_default();
  command
      .add_option("--seconds", options->seconds,
                  "Time limit [s]: start no step that is estimated to end later.")
      .range(1, 1 << 20)
      .show_default();
  add_device_options(command, options->device);
  command.add_option("-o,--output", options->folder, "Folder of the tables.").type_name("DIR").show_default();
  command.footer("Example: stepcast-gpu validate --traces traces --precision tf32 -o validation");
  command.callback([options] { validate(*options); });
}

}  // namespace stepcast
