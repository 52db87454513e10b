#include "forecast/advice/advice.hpp"

#include <catch2/catch.hpp>

#include "forecast/forecast.hpp"
#include "tests/scenarios/scenario_text.hpp"

using namespace stepcast;
using Catch::Matchers::Contains;

namespace {

const std::string kCnn =
    "name: tiny\nmodel: small-cnn\ntrace: small-cnn-b64-cpu\nplatform: ethernet-cpu\nepoch: {samples: 60000, "
    "epochs: 2}\n";
const std::string kIdleCnn =
    kCnn + "strategy: {kind: synchronous, overlap: false, bucket: model, all_reduce: binomial_tree}\n";

AdvisedPoint advice_for(const Scenario& scenario, int processes = 1) {
  Library library;
  ForecastOptions options;
  for (std::size_t i = 0; i < scenario.points.size(); ++i) options.points.push_back(i);
  const Simulations all = forecast(scenario, library, options);
  return advised(scenario, options.points, all, library, processes).value();
}

const Advice* advice_about(const AdvisedPoint& advised, const std::string& key) {
  const auto found = std::ranges::find_if(
      advised.helpful, [&](const Advice& one) { return one.change.values.front().path == key; });
  return found == advised.helpful.end() ? nullptr : &*found;
}

}  // namespace

TEST_CASE("advice is what a simulation with the change gains at the point with most workers", "[forecast]") {
  const Scenario scenario = scenario_of(kIdleCnn + "sweep: {workers: [4, 64]}\n");
  const AdvisedPoint advised = advice_for(scenario);
  CHECK(scenario.points[advised.point].name == "workers=64");
  REQUIRE(!advised.helpful.empty());
  const Advice& first = advised.helpful.front();
  Library library;
  auto values = scenario.points[advised.point].values;
  const auto rate = [&] {
    return *simulate_point(build_experiment(scenario.document, values, library)).number("samples_per_second");
  };
  const double before = rate();
  values.insert(values.end(), first.change.values.begin(), first.change.values.end());
  CHECK(first.gain == rate() / before - 1);
  CHECK(first.gain >= advised.helpful.back().gain);
  CHECK(advised.helpful.size() <= 3);
}

TEST_CASE("advice is the same in any number of processes, and no more than its share of simulations",
          "[forecast]") {
  const Scenario scenario = scenario_of(kIdleCnn +
                                        "sweep: {workers: [64]}\nassumed: [{key: platform.network.latency, "
                                        "range: [1 us, 100 us], why: test}]\n");
  const AdvisedPoint one = advice_for(scenario, 1);
  CHECK(one.tried.size() <= 3);  // 15 % of 16 draws, but at least three
  CHECK(advice_lines(scenario, one) == advice_lines(scenario, advice_for(scenario, 2)));
}

TEST_CASE("advice that changes the result of a training says what, and free advice is named first",
          "[forecast]") {
  const Scenario scenario = scenario_of(kCnn + "strategy: {kind: synchronous}\nsweep: {workers: [64]}\n");
  const AdvisedPoint advised = advice_for(scenario);
  REQUIRE(advice_about(advised, "batch_per_worker") != nullptr);
  const auto lines = advice_lines(scenario, advised);
  CHECK(std::ranges::any_of(lines, [](const std::string& line) {
    return line.find("changes the training: 8192 samples a step in place of 4096") != std::string::npos;
  }));
  AdvisedPoint both = advised;
  both.helpful.insert(both.helpful.begin(), advised.helpful.front());
  both.helpful.front().change.bought = true;
  Advice free;
  free.change.values = parse_assignments({"strategy.bucket=1 MiB"});
  free.gain = 0.02;
  both.helpful.push_back(free);
  CHECK(advice_sentence(scenario, both) == "Change first: strategy.bucket: 1 MiB, +2 % samples/s.");
  both.helpful.pop_back();
  CHECK_THAT(advice_sentence(scenario, both), Contains("(other hardware)"));
}

TEST_CASE("a key of the sweep or of an assumption is no advice", "[forecast]") {
  const AdvisedPoint swept = advice_for(scenario_of(
      kIdleCnn + "sweep: {workers: [64], strategy.overlap: [false], strategy.bucket: [model]}\n"));
  CHECK(advice_about(swept, "strategy.overlap") == nullptr);
  CHECK(advice_about(swept, "strategy.bucket") == nullptr);
  for (const std::string& tried : swept.tried) CHECK_FALSE(tried.starts_with("strategy.bucket"));
}

TEST_CASE("where communication is nothing, nothing is simulated and the answer says so", "[forecast]") {
  const Scenario scenario = scenario_of(kCnn + "strategy: {kind: synchronous}\nsweep: {workers: [1]}\n");
  const AdvisedPoint advised = advice_for(scenario);
  CHECK(advised.tried.empty());
  CHECK(advice_lines(scenario, advised).empty());
  CHECK(advice_sentence(scenario, advised) ==
        "Nothing that a scenario can change would save 1 % of the step at workers=1.");
}

TEST_CASE("the schedule 1f1b is a change of a pipeline whose stages work one after the other", "[forecast]") {
  const Scenario scenario = scenario_of(
      "name: p\nmodel: gpt2-small\ntrace: derived\nplatform: dgx-a100\nbatch_per_worker: 8\n"
      "strategy: {kind: pipeline, stages: 4, micro_batches: 8, schedule: naive}\nsweep: {workers: [4]}\n");
  Library library;
  auto values = scenario.points.front().values;
  const Experiment experiment = build_experiment(scenario.document, values, library);
  const Row naive = simulate_point(experiment);
  const auto changes = possible_changes(scenario.document, experiment, naive, {}, 0.01);
  const auto found = std::ranges::find_if(
      changes, [](const Change& one) { return one.values.front().path == "strategy.schedule"; });
  REQUIRE(found != changes.end());
  CHECK(to_string(*found) == "strategy.schedule: 1f1b in place of naive");
  values.insert(values.end(), found->values.begin(), found->values.end());
  const Row better = simulate_point(build_experiment(scenario.document, values, library));
  CHECK(better.number("step_seconds") < naive.number("step_seconds"));
}

TEST_CASE("hardware is what is sold next: NICs of a rate of Ethernet, and the next device of the maker",
          "[forecast]") {
  const Scenario scenario = scenario_of(
      "name: h\nmodel: gpt2-small\ntrace: derived\nplatform: dgx-a100\nbatch_per_worker: 4\n"
      "strategy: {kind: synchronous}\nsweep: {workers: [32]}\n");
  Library library;
  const Experiment experiment = build_experiment(scenario.document, scenario.points[0].values, library);
  Row row;
  row.set("step_seconds", 1.0);
  row.set("compute_seconds", 0.5);
  const auto changes = possible_changes(scenario.document, experiment, row, {}, 0.01);
  std::vector<std::string> bought;
  for (const Change& one : changes) {
    if (one.bought) bought.push_back(to_string(one));
  }
  REQUIRE(bought.size() == 2);
  CHECK_THAT(bought[0] + bought[1], Contains("platform.device: h100-sxm in place of a100-40gb"));
  CHECK_THAT(bought[0] + bought[1], Contains("NICs of 400 Gbit/s"));
  CHECK(possible_changes(scenario.document, experiment, row, {"platform"}, 0.01).size() ==
        changes.size() - 2);
  CHECK(possible_changes(scenario.document, experiment, row, {}, 0.6).empty());
}
