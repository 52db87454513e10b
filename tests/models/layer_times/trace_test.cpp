#include "models/layer_times/trace.hpp"

#include <catch2/catch.hpp>

#include "core/error.hpp"
#include "models/layer_times/trace_text.hpp"
#include "read_text.hpp"

using namespace stepcast;

namespace {

Trace small_trace() {
  Trace trace;
  trace.name = "m-b2-here";
  trace.kind = Trace::Kind::captured;
  trace.model = "m";
  trace.batch = 2;
  trace.precision = "f32";
  trace.device = "cpu \"here\"";
  trace.library = "library 1.2";
  trace.threads = 2;
  trace.update_arrays = 8.5;
  trace.date = "2026-11-21";
  trace.command = "stepcast capture --model m\\n";
  trace.source = "two lines\nof text";
  trace.flags = {"noisy: 3 %", "#2"};
  trace.step_seconds = {0.0125, 1.5e-7};
  trace.step_cpu_seconds = {0.0125, 2};
  trace.layers = {
      {"a", {{3, 1, 2}, {3, 1, 2}}, {}, {{0.5, 0.25, 0.125}, {}}, {{1e-9, 2e-9, 3e-9}, {}}},
      {"b: c", {{4, 4, 4}, {}}, {}, {}, {}, "", {.forward = 2e-3, .backward = 3e-3, .update = 0}}};
  return trace;
}

}  // namespace

TEST_CASE("a trace survives writing and reading", "[models]") {
  const Trace trace = small_trace();
  const Trace again = trace_of(to_yaml(trace));
  CHECK(to_yaml(again) == to_yaml(trace));
  CHECK(again.kind == trace.kind);
  CHECK(again.update_arrays == 8.5);
  CHECK(again.command == trace.command);
  CHECK(again.source == trace.source);
  CHECK(again.device == trace.device);
  CHECK(again.flags == trace.flags);
  CHECK(again.step_seconds == trace.step_seconds);
  CHECK(again.layers[0].update.seconds == trace.layers[0].update.seconds);
  CHECK(again.layers[1].name == "b: c");
}

TEST_CASE("a trace of several ranks has as many samples of each", "[models][errors]") {
  Trace trace = small_trace();
  join(trace, small_trace());
  CHECK(trace.ranks == 2);
  CHECK(trace.layers[0].forward.seconds == std::vector<double>{3, 1, 2, 3, 1, 2});
  CHECK(trace_of(to_yaml(trace)).ranks == 2);
  trace.ranks = 4;
  CHECK_THROWS_WITH(trace_of(to_yaml(trace)),
                    Catch::Contains("ranks: expected a divisor of the 6 samples, got \"4\""));
}

TEST_CASE("times are written with six significant digits, one line for each pass", "[models]") {
  Trace trace = small_trace();
  trace.layers = {{"a", {{1.0 / 3, 2e-5 / 3}, {}}, {}, {}, {}}};
  CHECK(to_yaml(trace).ends_with(
      "layers:\n  - name: \"a\"\n    forward: {seconds: [0.333333, 6.66667e-06]}\n"));
}

TEST_CASE("the median is the middle sample or the mean of the two in the middle", "[models]") {
  CHECK(median({}).value == 0);
  CHECK(median({3}).value == 3);
  CHECK(median({9, 1, 2}).value == 2);
  CHECK(median({9, 1, 2, 4}).value == 3);
}

TEST_CASE("a step is the sum of the medians of all passes", "[models]") {
  CHECK(step_time(small_trace()).value == Approx(2 + 0.25 + 2e-9 + 4).epsilon(1e-15));
}

TEST_CASE("a trace fits a model with the same layers in the same order", "[models][errors]") {
  Model model;
  model.name = "m";
  model.layers.resize(2);
  model.layers[0].name = "a";
  model.layers[1].name = "b: c";
  CHECK_NOTHROW(check_fits(small_trace(), model));
  model.layers[1].name = "c";
  CHECK_THROWS_WITH(check_fits(small_trace(), model),
                    "trace m-b2-here: layers[1]: expected layer \"c\" of model m, got \"b: c\"");
  model.layers.resize(1);
  CHECK_THROWS_WITH(check_fits(small_trace(), model),
                    "trace m-b2-here: expected the 1 layers of model m, got 2");
}

TEST_CASE("read_trace says where and what it expected", "[models][errors]") {
  const std::string good =
      "name: t\nkind: captured\nmodel: m\nbatch: 1\nprecision: f32\ndevice: d\nsource: s\n"
      "layers:\n  - name: a\n    forward: {seconds: [1, 2], cpu_seconds: [1, 2]}\n"
      "    update: {seconds: [1, 2]}\n";
  struct Case {
    std::string right, wrong, message;
  };
  const auto edit = GENERATE(values<Case>({
      {"kind: captured", "kind: guessed",
       "t.yaml:2:7: kind: expected one of captured, derived, got \"guessed\""},
      {"[1, 2], cpu", "[1, -2], cpu",
       "t.yaml:10:28: layers[0].forward.seconds[1]: expected a number >= 0, got \"-2\""},
      {"cpu_seconds: [1, 2]", "cpu_seconds: [1]",
       "t.yaml:10:14: layers[0].forward: expected as many cpu_seconds as seconds, got 1 and 2"},
      {"update: {seconds: [1, 2]}", "update: {seconds: [1]}",
       "t.yaml:9:5: layers[0]: expected 2 samples in every pass, as in the passes above, got 1"},
      {"batch: 1", "batch: 0", "t.yaml:4:8: batch: expected an integer from 1 to 1000000000, got \"0\""},
      {"source: s\n", "", "t.yaml:1:1: source: missing (expected how the times were obtained)"},
  }));
  std::string text = good;
  CHECK_NOTHROW(trace_of(text));
  text.replace(text.find(edit.right), edit.right.size(), edit.wrong);
  CAPTURE(text);
  CHECK_THROWS_WITH(trace_of(text), edit.message);
}
