#include "commands/learn/learning_points.hpp"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <filesystem>
#include <fstream>

#include "commands/learn/learning_tables.hpp"
#include "report/results/results.hpp"

using namespace stepcast;

// Trainings of a scenario: seeds, warm starts and trends.

namespace {

constexpr const char* kScenario = R"(
name: learns
model: tiny-dnn
trace: derived
platform: ethernet-cpu
batch_per_worker: 8
strategy: {kind: synchronous}
simulation: {seed: 1}
learning:
  mini_batches: 5
  evaluate_every: 2
  seeds: 2
  learning_rate: 0.02
  data: {kind: sequences, samples: 512, test_samples: 64}
  trends:
    - {point: {workers: 2}, over: {workers: 1}, quantity: seconds, relation: more_than, source: "sums take time"}
    - {point: {workers: 2}, over: {workers: 1}, quantity: seconds, relation: less_than, source: "never"}
sweep: {workers: [1, 2]}
)";

/// A scenario in a folder of its own, which is removed at the end.
struct Folder {
  std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("learning-points-" + std::to_string(::getpid()));
  Folder() {
    std::filesystem::create_directories(path);
    std::ofstream(path / "learns.yaml") << kScenario;
  }
  ~Folder() { std::filesystem::remove_all(path); }

  Scenario scenario(const std::vector<std::string>& settings = {}) const {
    std::vector<Assignment> values;
    for (const std::string& text : settings) values.push_back(parse_assignment(text));
    return read_scenario(path / "learns.yaml", values);
  }
};

Results trained_in(const Folder& folder, const Scenario& scenario, bool checkpoints = false) {
  return trained({scenario, folder.path, checkpoints, 2}, learning_runs(scenario));
}

}  // namespace

TEST_CASE("a point is trained once with each seed, and its last state is evaluated", "[commands]") {
  const Folder folder;
  const Results rows = trained_in(folder, folder.scenario());
  REQUIRE(rows.rows.size() == 2 * 2 * 4);  // after 0, 2, 4 and 5 mini-batches
  CHECK(rows.rows[3].number("step") == 5);
  CHECK(rows.rows[3].number("samples") == 40);
  CHECK(rows.rows[0].number("seed") == 1);
  CHECK(rows.rows[4].number("seed") == 2);
  CHECK(rows.rows[0].number("loss") != rows.rows[4].number("loss"));         // another task
  CHECK(*rows.rows[0].number("loss") == Approx(std::log(10)).margin(0.05));  // that of a guess
  CHECK(to_csv(rows) == to_csv(trained_in(folder, folder.scenario())));
}

TEST_CASE("a mini-batch that is larger than the training set takes samples again", "[commands]") {
  const Folder folder;
  const auto end = [&](const char* batch) {
    const Scenario scenario =
        folder.scenario({"sweep={workers: [1]}", "learning.seeds=1", "learning.learning_rate=0.2",
                         "learning.data.samples=3", std::string("batch_per_worker=") + batch});
    return *trained_in(folder, scenario).rows.back().number("loss");
  };
  const double once = end("3");
  CHECK(end("6") == Approx(once).epsilon(1e-6));   // each sample twice in a step; to rounding
  CHECK(std::abs(end("4") - once) > 1e-4 * once);  // one sample twice
}

TEST_CASE("data that do not fit the network are refused with the scenario's file and the point",
          "[commands][errors]") {
  const Folder folder;
  CHECK_THROWS_WITH(
      learning_runs(folder.scenario({"learning.data={kind: images}"})),
      Catch::StartsWith((folder.path / "learns.yaml").string() + ": point workers=1 cannot learn") &&
          Catch::Contains("data: images needs a network with"));
}

TEST_CASE("workers of a warm start begin with one worker's parameters, seconds and samples", "[commands]") {
  const Folder folder;
  const std::vector<std::string> once{"learning.seeds=1"};
  const Results alone = trained_in(folder, folder.scenario(once));
  const Results warm = trained_in(
      folder, folder.scenario({"learning.seeds=1", "learning.warm_start=5", "learning.mini_batches=1"}));
  const Row& end = alone.rows[3];  // one worker after 5 mini-batches
  CHECK(warm.rows[0].number("loss") == end.number("loss"));
  CHECK(warm.rows[0].number("seconds") == end.number("seconds"));
  CHECK(warm.rows[0].number("samples") == end.number("samples"));
  CHECK(warm.rows[1].number("samples") == *end.number("samples") + 8);
}

TEST_CASE("a training continues from a checkpoint", "[commands]") {
  const Folder folder;
  const Results first = trained_in(folder, folder.scenario({"learning.seeds=1"}), true);
  const std::string file = (folder.path / "training-1.parameters").string();
  REQUIRE(std::filesystem::exists(file));
  const Results next = trained_in(folder, folder.scenario({"learning.seeds=1", "learning.start=" + file}));
  CHECK(next.rows[0].number("loss") == first.rows[3].number("loss"));
}

TEST_CASE("a resumed call trains only what is not finished, and gives the same rows", "[commands]") {
  const Folder folder;
  const Scenario scenario = folder.scenario();
  const std::string inputs = fingerprint_of(scenario, {});
  const auto rows_with = [&](const TrainingStore& store) {
    return to_csv(trained({scenario, folder.path, false, 2, store}, learning_runs(scenario)));
  };
  const std::string whole = rows_with(TrainingStore(folder.path, inputs, false));
  const std::filesystem::path kept = folder.path / "trainings";
  std::filesystem::remove(kept / "training-2.jsonl");
  CHECK(rows_with(TrainingStore(folder.path, inputs, true)) == whole);
  std::filesystem::copy_file(kept / "training-1.jsonl", kept / "training-2.jsonl",
                             std::filesystem::copy_options::overwrite_existing);
  CHECK(rows_with(TrainingStore(folder.path, inputs, true)) != whole);  // a finished one is not run again
  CHECK(rows_with(TrainingStore(folder.path, inputs, false)) == whole);
  std::ofstream(kept / "training-2.jsonl", std::ios::trunc)
      .close();  // as a file system leaves it that lost power
  CHECK(rows_with(TrainingStore(folder.path, inputs, true)) == whole);
}

TEST_CASE("a finished training whose file is damaged is refused with its place", "[commands][errors]") {
  const Folder folder;
  const TrainingStore store(folder.path, "inputs", false);
  store.add("training-1", "{\"loss\":1}\n{\"loss\"\n");
  CHECK_THROWS_WITH(store.known("training-1"),
                    Catch::StartsWith((folder.path / "trainings" / "training-1.jsonl").string() + ":2:"));
}

TEST_CASE("finished trainings belong to all inputs and settings", "[commands]") {
  const Folder folder;
  const std::string inputs = fingerprint_of(folder.scenario(), {});
  CHECK(inputs == fingerprint_of(folder.scenario(), {}));
  CHECK(inputs != fingerprint_of(folder.scenario(), {"learning.learning_rate=0.1"}));
  const TrainingStore first(folder.path, inputs, false);
  const std::string row = "{\"scenario\":\"learns\",\"loss\":1}\n";
  first.add("training-1", row);
  CHECK(TrainingStore(folder.path, inputs, true).known("training-1") == row);
  CHECK(!TrainingStore(folder.path, "other", true).known("training-1"));
  CHECK(!TrainingStore(folder.path, inputs, true)
             .known("training-1"));  // gone: the folder has other inputs now
  const std::string base = (folder.path / "").string();
  const std::vector<std::string> raw{"learning.data={kind: raw, train: " + base + "train.raw, test: " + base +
                                     "test.raw}"};
  const auto with_data = [&](const char* text) {
    for (const char* name : {"train.raw", "test.raw"}) std::ofstream(folder.path / name) << text;
    return fingerprint_of(folder.scenario(raw), raw);
  };
  CHECK(with_data("one") != with_data("two"));
}

TEST_CASE("finished trainings belong to the scenarios that theirs inherits from, too", "[commands]") {
  const Folder folder;
  std::ofstream(folder.path / "child.yaml") << "defaults: learns.yaml\nname: child\n";
  const auto inputs = [&] { return fingerprint_of(read_scenario(folder.path / "child.yaml", {}), {}); };
  const std::string before = inputs();
  CHECK(inputs() == before);
  std::ofstream(folder.path / "learns.yaml", std::ios::app) << "description: another rate\n";
  CHECK(inputs() != before);
}

TEST_CASE("learning per record times records per second is learning per second", "[commands]") {
  LearnedPoint learns, fails;
  learns.point = "workers=4";
  learns.seconds = 2;
  learns.samples = 1000;
  learns.samples_to_target = 250;
  learns.seconds_to_target = 0.6;
  fails.point = "workers=8";
  fails.seconds = 1;
  fails.samples = 1000;
  const Results table = learning_per_second("s", {learns, fails});
  REQUIRE(table.rows.size() == 2);
  CHECK(table.rows[0].number("learning_per_record") == 1.0 / 250);
  CHECK(table.rows[0].number("records_per_second") == 500);
  CHECK(table.rows[0].number("learning_per_second") == 2);
  CHECK(table.rows[1].number("records_per_second") == 1000);
  CHECK(!table.rows[1].number("learning_per_second"));  // never reaches the target
  const CurvePlot plot = time_to_target_plot("s", {learns, fails}, 0.5);
  REQUIRE(plot.curves.size() == 1);
  CHECK(plot.curves[0].measured == std::vector<std::pair<double, double>>{{4, 0.6}});
}

TEST_CASE("a trend is judged by the share of seeds in which it holds", "[commands]") {
  const Folder folder;
  const Scenario scenario = folder.scenario();
  const auto runs = learned_runs(trained_in(folder, scenario), 0.1);
  const auto trends = learning_runs(scenario).front().experiment.learning->trends;
  const auto results = trend_results(scenario, trends, runs);
  REQUIRE(results.size() == 2);
  CHECK(results[0].seeds == 2);
  CHECK(results[0].holds == 2);
  CHECK(results[0].verdict() == "yes");
  CHECK(results[1].verdict() == "no");
  auto unreached = trends;
  unreached[0].quantity = "seconds_to_target";  // a loss of 0.1 is not reached by any training
  CHECK(trend_results(scenario, unreached, runs)[0].holds == 0);
  auto same = trends;
  same[0].quantity = same[1].quantity = "loss";
  same[0].relation = same[1].relation = LearningTrend::Relation::equal;
  same[0].within = 0.5;  // the losses of one and two workers after five mini-batches differ by a few percent
  same[1].within = 1e-6;
  const auto equal = trend_results(scenario, same, runs);
  CHECK(equal[0].holds == 2);
  CHECK(equal[1].holds == 0);
  CHECK(equal[0].relation == "within 50 % of");
  same[0].relation = LearningTrend::Relation::at_most;
  same[1].relation = LearningTrend::Relation::at_most;
  same[1].point = same[0].over;
  same[1].over = same[0].point;
  same[0].within = same[1].within = 1e-6;  // only the larger of the two is more than a millionth above
  const auto most = trend_results(scenario, same, runs);
  CHECK(most[0].holds + most[1].holds == 2);
  CHECK(most[0].relation == "at most 0.0001 % above");
  auto missing = trends;
  missing[0].point = {parse_assignment("workers=3")};
  CHECK_THROWS_WITH(trend_results(scenario, missing, runs),
                    Catch::EndsWith("learning.trends: the sweep has no point with workers=3"));
  CHECK_THROWS_WITH(check_trends(scenario, missing),
                    Catch::EndsWith("learning.trends: the sweep has no point with workers=3"));
  check_trends(scenario, trends);
  missing[0].point = {};
  CHECK_THROWS_WITH(check_trends(scenario, missing),
                    Catch::EndsWith("the sweep has 2 points with : \"workers=1\", "
                                    "\"workers=2\"; give more values"));
}
