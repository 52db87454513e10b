#include "strategies/plan/setting.hpp"

#include <catch2/catch.hpp>

#include "core/error.hpp"
#include "strategies/options/strategy.hpp"

using namespace stepcast;

namespace {

Model two_layers() {
  const YamlNode node = parse_yaml(
      "{name: m, source: s, input: [4], layers: [{name: a, kind: dense, units: 2}, {name: b, kind: "
      "softmax_cross_entropy}]}",
      "m.yaml");
  return read_model(YamlValue(node, ""));
}

/// Layer a takes 1, 2 + 3 and 0.5 ms a sample of the batch in the middle step, 20 % more or less in the
/// others.
Trace trace_of(std::int64_t batch, double scale) {
  const auto pass = [&](double seconds) {
    return PassSamples{{0.8 * seconds * scale, seconds * scale, 1.2 * seconds * scale}, {}};
  };
  Trace trace;
  trace.name = "t";
  trace.kind = Trace::Kind::captured;
  trace.model = "m";
  trace.batch = batch;
  trace.flags = {"doubt"};
  trace.layers = {{"a", pass(1e-3), pass(2e-3), pass(3e-3), pass(5e-4)}, {"b", pass(1e-4), {}, {}, {}}};
  return trace;
}

}  // namespace

TEST_CASE("a trace of the batch gives its medians and every measured step", "[scenarios]") {
  const Trace trace = trace_of(8, 1);
  const LayerTimes times = layer_times(two_layers(), {&trace}, 8);
  CHECK(times.kind == "captured");
  CHECK(times.flags == std::vector<std::string>{"doubt"});
  CHECK(times.median.at(0).forward == Approx(1e-3));
  CHECK(times.median.at(0).backward == Approx(5e-3));
  CHECK(times.median.at(0).update == Approx(5e-4));
  CHECK(times.median.at(1).backward == 0);
  REQUIRE(times.samples.size() == 3);
  CHECK(times.samples[2].at(0).backward == Approx(6e-3));
}

TEST_CASE("a strategy's array takes the trace's update over the arrays that the update reads and writes",
          "[scenarios]") {
  Trace trace = trace_of(8, 1);
  const auto array = [&] {
    const Model model = two_layers();
    return array_work(make_workload(model, layer_times(model, {&trace}, 16), 2).workload, 3).value;
  };
  CHECK(array() == Approx(2 * 3 * 5e-4 / 5));
  trace.update_arrays = 8;
  CHECK(array() == Approx(2 * 3 * 5e-4 / 8));
}

TEST_CASE("between two batches the times are linear in the batch", "[scenarios]") {
  const Trace small = trace_of(4, 1), large = trace_of(8, 3);
  const LayerTimes times = layer_times(two_layers(), {&large, &small}, 5);
  CHECK(times.kind == "captured, interpolated");
  CHECK(times.median.at(0).forward == Approx(1.5e-3));
  CHECK(times.median.at(0).backward == Approx(7.5e-3));
  CHECK(times.median.at(0).update == Approx(7.5e-4));
}

TEST_CASE("traces of unlike devices in one list are a doubt at every batch", "[scenarios]") {
  Trace small = trace_of(4, 1), large = trace_of(8, 3);
  small.device = "slow";
  large.device = "fast";
  const std::vector<std::string> doubts{"doubt", "the traces listed are of unlike devices: slow and fast"};
  CHECK(layer_times(two_layers(), {&large, &small}, 8).flags == doubts);
  CHECK(layer_times(two_layers(), {&large, &small}, 5).flags == doubts);
  small.device = "fast";
  CHECK(layer_times(two_layers(), {&large, &small}, 5).flags == std::vector<std::string>{"doubt"});
}

TEST_CASE("between two batches the doubts of both traces are kept, a common one once", "[scenarios]") {
  Trace small = trace_of(4, 1), large = trace_of(8, 3);
  small.flags = {"common", "of the small"};
  large.flags = {"of the large", "common"};
  using Flags = std::vector<std::string>;
  CHECK(layer_times(two_layers(), {&small, &large}, 5).flags ==
        Flags{"of the large", "common", "of the small"});
  CHECK(layer_times(two_layers(), {&small, &large}, 8).flags == Flags{"of the large", "common"});
  CHECK(layer_times(two_layers(), {&small, &large}, 2).flags == Flags{"common", "of the small"});
}

TEST_CASE("beyond the batches forward and backward grow with the batch, the update does not", "[scenarios]") {
  const Trace small = trace_of(4, 1), large = trace_of(8, 3);
  const LayerTimes above = layer_times(two_layers(), {&small, &large}, 16);
  CHECK(above.kind == "captured, scaled");
  CHECK(above.median.at(0).forward == Approx(6e-3));
  CHECK(above.median.at(0).backward == Approx(30e-3));
  CHECK(above.median.at(0).update == Approx(1.5e-3));
  const LayerTimes below = layer_times(two_layers(), {&small, &large}, 2);
  CHECK(below.kind == "captured, scaled");
  CHECK(below.median.at(0).forward == Approx(0.5e-3));
  CHECK(below.median.at(0).update == Approx(5e-4));
}

TEST_CASE("every sample keeps its ratio to the median, whatever the batch", "[scenarios]") {
  const Trace small = trace_of(4, 1), large = trace_of(8, 3);
  for (const std::int64_t batch : {2, 4, 5, 8, 16}) {
    const LayerTimes times = layer_times(two_layers(), {&small, &large}, batch);
    REQUIRE(times.samples.size() == 3);
    CHECK(times.samples[0].at(0).forward == Approx(0.8 * times.median[0].forward));
    CHECK(times.samples[2].at(0).backward == Approx(1.2 * times.median[0].backward));
    CHECK(times.samples[2].at(0).update == Approx(1.2 * times.median[0].update));
    CHECK(times.samples[1].at(1).backward == 0);
  }
}

TEST_CASE("a derived trace says so, and one of other layers is refused", "[scenarios]") {
  Trace trace = trace_of(8, 1);
  trace.kind = Trace::Kind::derived;
  CHECK(layer_times(two_layers(), {&trace}, 9).kind == "derived, scaled");
  trace.layers[1].name = "c";
  CHECK_THROWS_AS(layer_times(two_layers(), {&trace}, 8), InputError);
}
