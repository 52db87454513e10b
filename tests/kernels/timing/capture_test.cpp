#include "kernels/timing/capture.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <filesystem>
#include <stdexcept>

#include "check/cases.hpp"
#include "core/error.hpp"
#include "core/yaml.hpp"
#include "kernels/onednn/backend.hpp"
#include "kernels/timing/host_info.hpp"
#include "kernels/timing/step_timer.hpp"
#include "models/layer_times/trace.hpp"
#include "models/layer_times/trace_text.hpp"
#include "models/loader.hpp"

using namespace stepcast;

using namespace stepcast::test;

namespace {

Model dense_model() {
  Model model;
  model.name = "dense-only";
  model.input = {64};
  model.layers = {dense_layer({64}, 32, true), loss_layer(LayerKind::mean_squared_error, {32})};
  model.layers[0].name = "dense";
  model.layers[1].name = "loss";
  model.layers[1].inputs = {0};
  return model;
}

/// Options with wide limits: small steps on a busy machine are disturbed, and no test may depend on time.
CaptureOptions tolerant_options() {
  CaptureOptions options;
  options.name = "dense-only-b4-cpu";
  options.command = "stepcast capture";
  options.batch = 4;
  options.steps = 5;
  options.disturbance = 1e9;
  return options;
}

}  // namespace

TEST_CASE("a capture keeps every sample of every pass that runs", "[kernels][capture]") {
  const auto backend = make_onednn_backend();
  const Trace trace = capture(*backend, dense_model(), tolerant_options());
  CHECK(trace.kind == Trace::Kind::captured);
  CHECK(trace.model == "dense-only");
  CHECK(trace.batch == 4);
  CHECK(trace.step_seconds.size() == 5);
  CHECK(trace.step_cpu_seconds.size() == 5);
  REQUIRE(trace.layers.size() == 2);
  CHECK(trace.layers[0].forward.seconds.size() == 5);
  CHECK(trace.layers[0].forward.cpu_seconds.size() == 5);
  CHECK(trace.layers[0].backward_data.seconds.empty());  // its input is the network's input
  CHECK(trace.layers[0].backward_weights.seconds.size() == 5);
  CHECK(trace.layers[0].update.seconds.size() == 5);
  CHECK(trace.layers[1].backward_data.seconds.size() == 5);
  CHECK(trace.layers[1].update.seconds.empty());
}

TEST_CASE("networks that take turns in a capture give it the samples of one", "[kernels][capture]") {
  const auto backend = make_onednn_backend();
  CaptureOptions options = tolerant_options();
  options.copies = 3;
  options.part.accumulate = true;
  Capture rotating(*backend, dense_model(), options);
  rotating.set_warm_up(2);
  for (int turn = 0; turn < options.steps; ++turn) rotating.measure(1);
  const Trace trace = rotating.trace();
  CHECK(trace.step_seconds.size() == 5);
  CHECK(trace.layers[0].backward_weights.seconds.size() == 5);
  CHECK(rotating.network()->parameters(0).size() == 2);  // weights and bias
}

TEST_CASE("a captured trace comes back from its YAML with six digits", "[kernels][capture]") {
  const auto backend = make_onednn_backend();
  Trace trace = capture(*backend, dense_model(), tolerant_options());
  trace.flags = {"a \"quoted\" reason: with \\ and #"};
  const YamlNode node = parse_yaml(to_yaml(trace), "trace.yaml");
  const Trace back = read_trace(YamlValue(node, ""));
  CHECK(back.name == trace.name);
  CHECK(back.flags == trace.flags);
  CHECK(back.device == trace.device);
  CHECK(back.layers.size() == trace.layers.size());
  CHECK(back.layers[0].update.seconds[4] == Approx(trace.layers[0].update.seconds[4]).epsilon(1e-5));
  CHECK(back.step_seconds[0] == Approx(trace.step_seconds[0]).epsilon(1e-5));
}

TEST_CASE("progress ends at 1 and may end the capture", "[kernels][capture]") {
  const auto backend = make_onednn_backend();
  CaptureOptions options = tolerant_options();
  double last = -1;
  options.progress = [&](double share, Seconds left) {
    CHECK(share >= last);
    CHECK(left.value >= 0);
    last = share;
  };
  capture(*backend, dense_model(), options);
  CHECK(last == 1);
  options.progress = [](double, Seconds) { throw std::runtime_error("stopped"); };
  CHECK_THROWS_WITH(capture(*backend, dense_model(), options), "stopped");
}

TEST_CASE("a capture in which no step is undisturbed is refused", "[kernels][capture][errors]") {
  const auto backend = make_onednn_backend();
  CaptureOptions options = tolerant_options();
  options.disturbance = -1;  // no step is undisturbed
  CHECK_THROWS_WITH(capture(*backend, dense_model(), options),
                    Catch::Contains("capture: only 0 of 20 pairs of steps ran undisturbed"));
}

TEST_CASE(
    "a capture whose first pairs were disturbed has enough after more turns, and begins anew after a trace",
    "[kernels][capture]") {
  const auto backend = make_onednn_backend();
  CaptureOptions options = tolerant_options();
  options.steps = 3;
  options.attempts = 1;
  options.disturbance = 0.5;
  int disturbed = 3;
  options.max_over_ranks = [&](double) { return disturbed-- > 0 ? 1.0 : 0.0; };
  Capture turns(*backend, dense_model(), options);
  turns.measure(3);
  CHECK_FALSE(turns.has_enough());
  turns.measure(1);
  CHECK_FALSE(turns.has_enough());
  turns.measure(1);
  CHECK(turns.has_enough());
  CHECK(turns.trace().step_seconds.size() == 3);  // two undisturbed pairs, and the least disturbed other one
  CHECK_FALSE(turns.has_enough());
  turns.measure(3);
  CHECK(turns.trace().step_seconds.size() == 3);
}

TEST_CASE("a network that the machine's memory cannot hold is refused before it is built",
          "[kernels][capture][errors]") {
  const auto backend = make_onednn_backend();
  CaptureOptions options = tolerant_options();
  options.batch = std::int64_t{1} << 40;
  CHECK_THROWS_AS(capture(*backend, dense_model(), options), LimitError);
}

TEST_CASE("a capture whose sum over layers is outside the tolerance gets a flag", "[kernels][capture]") {
  const auto backend = make_onednn_backend();
  CaptureOptions options = tolerant_options();
  options.tolerance = -1;
  const Trace trace = capture(*backend, dense_model(), options);
  REQUIRE(trace.flags.size() == 2);
  CHECK_THAT(trace.flags[0],
             Catch::StartsWith("the sum over layers differs from steps without timers inside by "));
  CHECK_THAT(
      trace.flags[1],
      Catch::StartsWith("the sum of the layers' medians differs from the median step without timers "));
}

TEST_CASE("a step's disturbance is the share of wall time in which its threads did not run",
          "[kernels][capture]") {
  CHECK(disturbance({{2.0, 2.0}, {}}, 1) == Approx(0));
  CHECK(disturbance({{2.0, 1.5}, {}}, 1) == Approx(0.25));
  CHECK(disturbance({{2.0, 4.0}, {}}, 2) == Approx(0));
}

TEST_CASE("the bootstrap interval of paired ratios has no width without spread, and ignores a common drift",
          "[kernels][capture]") {
  const Interval sharp = median_of_ratios({3, 6, 12}, {2, 4, 8}, 1);
  CHECK(sharp.low == 1.5);
  CHECK(sharp.middle == 1.5);
  CHECK(sharp.high == 1.5);
}

TEST_CASE("the bootstrap interval narrows with the root of the sample", "[kernels][capture]") {
  const auto width = [](std::size_t count) {
    const Array spread = uniform_array(count, 5);
    std::vector<double> above, below(count, 1);
    for (const double value : spread) above.push_back(10 + value);
    const Interval interval = median_of_ratios(above, below, 1);
    CHECK(interval.low < interval.middle);
    CHECK(interval.middle < interval.high);
    return interval.high - interval.low;
  };
  CHECK(width(900) < width(100) / 1.5);  // the mean ratio is 3
}

TEST_CASE("stolen time is the eighth figure of the system's first line", "[kernels]") {
  CHECK(stolen_seconds("cpu  139253 0 11175 43572 749 0 133 4401 0 0\ncpu0 1 2 3 4 5 6 7 8 9 10\n", 100) ==
        44.01);
  CHECK(stolen_seconds("cpu  139253 0 11175 43572 749 0 133\n", 100) == 0);  // Linux before 2.6.11
  CHECK(stolen_seconds("", 100) == 0);
}

TEST_CASE("stolen time never decreases and is at most the elapsed time", "[kernels]") {
  const double before = stolen_seconds();
  const StolenShare share;
  CHECK(share.until_now() >= 0);
  CHECK(share.until_now(share.seconds() + 1) == 0);
  CHECK(stolen_seconds() >= before);
}

TEST_CASE("every committed CPU trace fits its model, and its sum of medians fits the step or is flagged",
          "[kernels][traces]") {
  const std::filesystem::path models = std::filesystem::path(STEPCAST_SOURCE_DIR) / "models";
  int traces = 0;
  for (const auto& entry : std::filesystem::directory_iterator(models / "traces")) {
    const std::string stem = entry.path().stem().string();
    if (!stem.ends_with("-cpu")) continue;
    INFO(stem);
    const YamlNode node = read_yaml(entry.path());
    const Trace trace = read_trace(YamlValue(node, ""));
    CHECK(trace.name == stem);
    CHECK(trace.kind == Trace::Kind::captured);
    CHECK_NOTHROW(check_fits(trace, load_model(models, trace.model)));
    if (trace.step_seconds.empty()) {  // a joined trace has no step of its own
      CHECK(!trace.flags.empty());
      continue;
    }
    CHECK(trace.step_seconds.size() >= 8);
    const double ratio = step_time(trace) / median(trace.step_seconds);
    CHECK((std::abs(ratio - 1) <= 0.02 || !trace.flags.empty()));
    ++traces;
  }
  CHECK(traces >= 11);
}
