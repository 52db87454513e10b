#include "strategies/plan/plan.hpp"

#include <array>
#include <catch2/catch.hpp>
#include <set>

#include "core/error.hpp"
#include "strategies/options/strategy.hpp"
#include "strategies/plan/run_conditions.hpp"
#include "strategies/plan/setting.hpp"

using namespace stepcast;

TEST_CASE("every stage does every micro-batch once each way, forward first", "[strategies]") {
  for (const PipelineOrder order :
       {PipelineOrder::naive, PipelineOrder::gpipe, PipelineOrder::one_forward_one_backward}) {
    for (int stage = 0; stage < 4; ++stage) {
      std::set<int> forward, backward;
      for (const PipelineAction& action : pipeline_schedule(order, stage, 4, 6)) {
        if (action.pass == Work::forward) CHECK(forward.insert(action.micro_batch).second);
        if (action.pass == Work::backward) {
          CHECK(forward.count(action.micro_batch) == 1);
          CHECK(backward.insert(action.micro_batch).second);
        }
      }
      CHECK(forward.size() == 6);
      CHECK(backward.size() == 6);
    }
  }
}

TEST_CASE("interleaved stages do every chunk of every micro-batch once each way, in an order that can be met",
          "[strategies]") {
  for (const int stages : {2, 4}) {
    for (const int chunks : {2, 3}) {
      const int micro_batches = 2 * stages;
      std::set<std::array<int, 3>> done;  // pass, run of layers, micro-batch
      std::vector<std::vector<PipelineAction>> left;
      for (int stage = 0; stage < stages; ++stage)
        left.push_back(pipeline_schedule(PipelineOrder::interleaved, stage, stages, micro_batches, chunks));
      std::vector<std::size_t> next(left.size());
      const auto ready = [&](int stage, const PipelineAction& action) {
        const int run = action.chunk * stages + stage, last = stages * chunks - 1;
        if (action.pass == Work::forward) return run == 0 || done.count({0, run - 1, action.micro_batch}) > 0;
        return run == last ? done.count({0, run, action.micro_batch}) > 0
                           : done.count({1, run + 1, action.micro_batch}) > 0;
      };
      for (bool any = true; any;) {  // every stage goes as far as it can
        any = false;
        for (int stage = 0; stage < stages; ++stage) {
          const std::size_t i = stage;
          for (; next[i] < left[i].size() && ready(stage, left[i][next[i]]); ++next[i], any = true) {
            const PipelineAction& action = left[i][next[i]];
            const int pass = action.pass == Work::forward ? 0 : 1;
            CHECK(done.insert({pass, action.chunk * stages + stage, action.micro_batch}).second);
          }
        }
      }
      CHECK(std::ssize(done) == 2 * stages * chunks * micro_batches);
    }
  }
}

TEST_CASE("interleaving holds more micro-batches of chunks than 1F1B of whole stages", "[strategies]") {
  const auto held = [](int stage) {
    const auto counts = most_in_flight(pipeline_schedule(PipelineOrder::interleaved, stage, 4, 8, 2), 2);
    return counts.at(0) + counts.at(1);
  };
  CHECK(held(0) == 11);  // of half a stage: 2 (S - 1) + (v - 1) S + 1, 1F1B holds 4 whole ones
  CHECK(held(3) == 5);
}

TEST_CASE("GPipe holds all micro-batches, 1F1B as many as there are stages left, naive one", "[strategies]") {
  for (int stage = 0; stage < 4; ++stage) {
    CHECK(most_in_flight(pipeline_schedule(PipelineOrder::gpipe, stage, 4, 6)) == std::vector<int>{6});
    CHECK(most_in_flight(pipeline_schedule(PipelineOrder::one_forward_one_backward, stage, 4, 6)) ==
          std::vector<int>{4 - stage});
    CHECK(most_in_flight(pipeline_schedule(PipelineOrder::one_forward_one_backward, stage, 4, 2)) ==
          std::vector<int>{std::min(2, 4 - stage)});
    CHECK(most_in_flight(pipeline_schedule(PipelineOrder::naive, stage, 4, 6)) == std::vector<int>{1});
  }
}

namespace {

/// A plan with three workers, a server and two more workers.
Plan two_kinds_of_workers(bool asynchronous) {
  Plan plan;
  plan.asynchronous = asynchronous;
  const auto add = [&plan](int first, int members, bool training) {
    Role role;
    role.first_rank = RankId(first);
    role.members = members;
    role.training = training;
    plan.roles.push_back(role);
  };
  add(0, 3, true);
  add(3, 1, false);
  add(4, 2, true);
  return plan;
}

}  // namespace

TEST_CASE("workers without a common pace start one after the other, servers at once", "[strategies]") {
  const Plan plan = two_kinds_of_workers(true);
  Noise noise;
  noise.start_spread = 10;
  std::vector<double> starts;
  for (int rank = 0; rank < 6; ++rank) starts.push_back(start_seconds(plan, noise, RankId(rank)));
  CHECK(starts == std::vector<double>{0, 2, 4, 0, 6, 8});
}

TEST_CASE("workers that step together start together", "[strategies]") {
  Noise noise;
  noise.start_spread = 10;
  CHECK(start_seconds(two_kinds_of_workers(false), noise, RankId{2}) == 0);
}

TEST_CASE("a step at one's own pace is workers over the sum of their rates", "[strategies]") {
  // Until 10 s, one worker ends four steps of 2 s and the other two of 4 s; a server ends none.
  CHECK(own_pace_step_seconds({{2, 4, 6, 8, 10}, {}, {2, 6, 10, 14}}) == Approx(2 / (1 / 2.0 + 1 / 4.0)));
  CHECK_THROWS_WITH(own_pace_step_seconds({{}}), "no worker ended a step");
}

TEST_CASE("a common step ends when the first worker learns of it", "[strategies]") {
  // The second worker has no work in steps 2 and 3, and learns of their ends with the order to stop.
  CHECK(common_step_seconds({{3, 5, 7}, {3.5, 7.5, 7.5}, {}}) == Approx(2));
  CHECK(common_step_seconds({{4}, {3}}) == 3);
  CHECK_THROWS_WITH(common_step_seconds({{}}), "no worker ended a step");
}

TEST_CASE("workers replay measured steps of their own rank, and those of one moment together",
          "[strategies]") {
  Noise noise;
  noise.jitter = Noise::Jitter::trace;
  const MeasuredSteps measured{.count = 12, .ranks = 3};
  std::set<int> seen;
  for (std::uint32_t step = 0; step < 200; ++step) {
    const int moment = draw(noise, 1, 0, step, measured).sample;
    REQUIRE((moment >= 0 && moment < 4));
    CHECK(draw(noise, 1, 1, step, measured).sample == 4 + moment);
    CHECK(draw(noise, 1, 2, step, measured).sample == 8 + moment);
    const int other = draw(noise, 1, 3, step, measured).sample;  // a machine of its own, of the first's speed
    CHECK((other >= 0 && other < 4));
    seen.insert(4 * moment + other);
  }
  CHECK(seen.size() == 16);
}

TEST_CASE("without a measured step there is none to replay", "[strategies]") {
  Noise noise;
  CHECK(draw(noise, 1, 0, 0, {.count = 12}).sample == -1);
  noise.jitter = Noise::Jitter::trace;
  CHECK(draw(noise, 1, 0, 0, {}).sample == -1);
}

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
