#include <catch2/catch.hpp>

#include "commands/run/best_alternatives.hpp"
#include "commands/run/checked_points.hpp"
#include "commands/run/run_options.hpp"
#include "commands/run/shards.hpp"
#include "commands/run/variance_shares.hpp"
#include "core/error.hpp"
#include "forecast/summary.hpp"
#include "rows.hpp"
#include "tests/scenarios/scenario_text.hpp"

using namespace stepcast;

namespace {

const std::string kText =
    "name: s\nmodel: small-cnn\ntrace: small-cnn-b64-cpu\nplatform: ethernet-cpu\n"
    "strategy: {kind: synchronous}\nsweep: ";
const std::string kAlgorithms =
    kText + "{workers: [8], strategy.all_reduce: [ring, recursive_doubling, binomial]}\n";

/// rates[draw][point] of points with these workers.
Simulations simulations(const std::vector<std::vector<double>>& rates, const std::vector<int>& workers) {
  Simulations all;
  for (const auto& draw : rates) {
    std::vector<Row> rows;
    for (std::size_t point = 0; point < draw.size(); ++point)
      rows.push_back(row_of(workers[point], draw[point], workers[point] / draw[point]));
    all.rows.push_back(std::move(rows));
  }
  all.without.resize(workers.size());
  return all;
}

Results compared(const Scenario& scenario, const std::vector<std::size_t>& points, const Simulations& all) {
  Results results = summarized_results(scenario, points, all);
  add_choices(scenario, points, all, results);
  return results;
}

}  // namespace

TEST_CASE("alternatives are compared draw by draw", "[forecast]") {
  // The rates of the draws differ by more than those of the first two points, which never change places.
  const Simulations all = simulations({{100, 101, 50}, {200, 202, 100}, {400, 404, 500}}, {8, 8, 8});
  const Results results = compared(scenario_of(kAlgorithms), {0, 1, 2}, all);
  CHECK(results.rows[0].number("best_probability") == 0);
  CHECK(results.rows[1].number("best_probability") == Approx(2.0 / 3));
  CHECK(results.rows[2].number("best_probability") == Approx(1.0 / 3));
  CHECK(results.rows[0].number("ratio_to_best_low") == Approx(100.0 / 101));
  CHECK(results.rows[0].number("ratio_to_best_high") == Approx(100.0 / 101));
  CHECK(results.rows[1].number("ratio_to_best") == 1);
  CHECK(equal_choices(results) ==
        std::vector<std::string>{"cannot be told apart, 2 of 3: workers=8, "
                                 "strategy.all_reduce=recursive_doubling (67 %); workers=8, "
                                 "strategy.all_reduce=binomial (33 %)"});
}

TEST_CASE("equal alternatives share the probability", "[forecast]") {
  const Results results = compared(scenario_of(kAlgorithms), {0, 1, 2},
                                   simulations({{100, 100, 50}, {200, 200, 100}}, {8, 8, 8}));
  CHECK(results.rows[0].number("best_probability") == 0.5);
  CHECK(results.rows[1].number("best_probability") == 0.5);
  CHECK(equal_choices(results).front().starts_with("cannot be told apart, 2 of 3: "));
}

TEST_CASE("points of different workers, and one simulation alone, are no alternatives", "[forecast]") {
  const Results sizes = compared(scenario_of(kText + "{workers: [1, 2]}\n"), {0, 1},
                                 simulations({{100, 150}, {100, 160}}, {1, 2}));
  CHECK_FALSE(sizes.rows[1].number("best_probability"));
  const Results one = compared(scenario_of(kAlgorithms), {0, 1, 2}, simulations({{1, 2, 3}}, {8, 8, 8}));
  CHECK_FALSE(one.rows[1].number("best_probability"));
}

TEST_CASE("workers are worth it up to the doubling that gives too little, in each draw", "[forecast]") {
  const Scenario scenario = scenario_of(kText + "{workers: [1, 2, 8]}\n");
  // From 2 to 8 workers are two doublings: 1.4 * 1.4 and 1.7 * 1.7 times.
  const Simulations all = simulations({{100, 180, 180 * 1.4 * 1.4}, {100, 180, 180 * 1.7 * 1.7}}, {1, 2, 8});
  const auto workers = worthy_workers(scenario, {0, 1, 2}, all, 1.5);
  REQUIRE(workers);
  CHECK(workers->low == 2);
  CHECK(worthy_workers(scenario, {0, 1, 2}, all, 1.9)->high == 1);
  CHECK(worthy_workers(scenario, {0, 1, 2}, all, 1.2)->low == 8);
  CHECK(to_string(*worthy_workers(scenario, {0, 1, 2}, all, 1.9), 1.9) ==
        "A further doubling gives less than 1.9 times beyond 1 workers [1 .. 1].");
  CHECK_FALSE(worthy_workers(scenario_of(kAlgorithms), {0, 1, 2}, all, 1.5));
}

TEST_CASE("shares of the variance are named by their input, the largest first, without those below 5 %",
          "[commands]") {
  CHECK(
      variance_sentence({{"platform.network.bandwidth", 0.1},
                         {"factors.host_work", 0.6},
                         {"factors.between_servers_bandwidth", 0.2},
                         {"noise.sigma", 0.04},
                         {"own.key", 0.06}},
                        "the step time at workers=64") ==
      "Not known, as shares of the variance of the step time at workers=64: host 60 %, network 30 %, own.key "
      "6 %.");
  CHECK(variance_sentence(
            {{"factors.layer_times", 0.7}, {"factors.kernel_start", 0.1}, {"noise.device_spread", 0.2}},
            "x") == "Not known, as shares of the variance of x: layer times 80 %, spread of devices 20 %.");
  CHECK(variance_sentence({{"noise.sigma", 0.04}}, "x").empty());
  CHECK(variance_sentence({}, "x").empty());
}

namespace {

using Lines = std::vector<std::string>;

const IneffectiveKey kChannels{"strategy.channels", "with all_reduce: double_tree"};
const std::string kNote = "strategy.channels: has no effect with all_reduce: double_tree";

/// Two points, which give `strategy.channels` or, for an empty text, do not.
Scenario with_channels(const std::string& first, const std::string& second) {
  Scenario scenario;
  scenario.points = {{"a", {}}, {"b", {}}};
  if (!first.empty()) scenario.points[0].values = {value_of("strategy.channels", first)};
  if (!second.empty()) scenario.points[1].values = {value_of("strategy.channels", second)};
  return scenario;
}

RunOptions shard(const std::string& text) {
  RunOptions options;
  options.shard_text = text;
  read_shard(options);
  return options;
}

}  // namespace

TEST_CASE("a key that is ineffective wherever it is given is noted once", "[commands]") {
  CHECK(ineffective_notes(with_channels("2", "4"), {{0, {kChannels}}, {1, {kChannels}}}) == Lines{kNote});
  CHECK(ineffective_notes(with_channels("2", ""), {{0, {kChannels}}, {1, {}}}) == Lines{kNote});
}

TEST_CASE("a key that has an effect at one of its points is not noted", "[commands]") {
  CHECK(ineffective_notes(with_channels("2", "4"), {{0, {kChannels}}, {1, {}}}).empty());
}

TEST_CASE("a key that a point gives inside a mapping is given", "[commands]") {
  Scenario scenario = with_channels("2", "");
  scenario.points[1].values = {parse_assignment("strategy={kind: synchronous, channels: 2}")};
  CHECK(ineffective_notes(scenario, {{0, {kChannels}}, {1, {}}}).empty());
}

TEST_CASE("a point of one device, which ignores most keys, does not decide which keys have an effect",
          "[commands]") {
  const IneffectiveAtPoint alone{.point = 1, .one_device = true};
  CHECK(ineffective_notes(with_channels("2", "4"), {{0, {kChannels}}, alone}) == Lines{kNote});
  CHECK(ineffective_notes(with_channels("2", "4"), {alone}).empty());
}

TEST_CASE("a shard is i/N with 0 <= i < N", "[commands]") {
  CHECK(shard("").shards == 1);
  CHECK(shard("2/5").shard == 2);
  CHECK(shard("2/5").shards == 5);
  for (const char* text : {"1", "5/5", "-1/5", "1/0", "a/b", "1/", "/3", "1/2/3", "0/1000001", "1 / 2"}) {
    CHECK_THROWS_AS(shard(text), InputError);
    CHECK_THROWS_WITH(shard(text),
                      std::string("--shard: expected i/N with 0 <= i < N, got \"") + text + "\"");
  }
}

namespace {

SlurmRun example() {
  return {.name = "big",
          .program = "/opt/stepcast/bin/stepcast",
          .current = "/home/a user",
          .data = "/opt/stepcast",
          .scenario = "/home/a user/big.yaml",
          .folder = "/scratch/big",
          .options = {"--draws", "8", "--set", "strategy.bucket=25 MiB", "--set", "name=it's"},
          .tasks = 3,
          .processes = 4};
}

}  // namespace

TEST_CASE("the array script of Slurm runs one shard a task and quotes every word", "[commands]") {
  CHECK(
      array_script(example()) ==
      "#!/bin/bash\n"
      "#SBATCH --job-name=big\n"
      "#SBATCH --array=0-2\n"
      "#SBATCH --cpus-per-task=4\n"
      "#SBATCH --output=part-%A-%a.log\n"
      "set -eu\n"
      "cd '/home/a user'\n"
      "export STEPCAST_DATA=/opt/stepcast\n"
      "exec /opt/stepcast/bin/stepcast run '/home/a user/big.yaml' --draws 8 --set 'strategy.bucket=25 MiB' "
      "--set 'name=it'\\''s' -j 4 --resume --shard \"$SLURM_ARRAY_TASK_ID/3\" -o "
      "/scratch/big/parts\"/$SLURM_ARRAY_TASK_ID\"\n");
}

TEST_CASE("the merge script of Slurm names the parts in order", "[commands]") {
  CHECK(merge_script(example()) ==
        "#!/bin/bash\n"
        "#SBATCH --job-name=big-merge\n"
        "#SBATCH --cpus-per-task=1\n"
        "#SBATCH --output=merge-%j.log\n"
        "set -eu\n"
        "cd '/home/a user'\n"
        "export STEPCAST_DATA=/opt/stepcast\n"
        "exec /opt/stepcast/bin/stepcast merge /scratch/big/parts/{0..2} -o /scratch/big\n");
}

TEST_CASE("a task of Slurm has at least a minute of work and a point", "[commands]") {
  CHECK(slurm_tasks(200, 100'000, {86'400}, 1) == 200);
  CHECK(slurm_tasks(200, 100'000, {720}, 1) == 12);
  CHECK(slurm_tasks(200, 100'000, {720}, 4) == 3);
  CHECK(slurm_tasks(200, 100'000, {10}, 1) == 1);
  CHECK(slurm_tasks(200, 7, {86'400}, 1) == 7);
}
