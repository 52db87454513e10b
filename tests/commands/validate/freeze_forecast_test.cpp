#include "commands/validate/freeze_forecast.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <set>

#include "commands/validate/validation_report.hpp"
#include "core/os/files.hpp"
#include "forecast/processes/process_pool.hpp"
#include "forecast/simulate_point.hpp"
#include "report/results/manifest.hpp"
#include "runtime/scenario_points/frozen_algorithms.hpp"
#include "tests/report/temporary_folder.hpp"

using namespace stepcast;

namespace {

/// A scenario whose ranks' trace and links are there as if they had been measured.
struct Measured {
  Measured(const std::string& text, ValidationOptions wanted, int ranks)
      : options(std::move(wanted)), cluster{.ranks = ranks} {
    options.scenario = (folder.path() / "scenario.yaml").string();
    write_atomically(options.scenario, text);
    validation = read_validation(options, ranks, placeholder_platform(cluster));
    const std::string trace = read_file(STEPCAST_SOURCE_DIR "/models/traces/small-cnn-b64-cpu.yaml");
    write_atomically(trace_file(folder.path(), validation.variants.at(0)), trace);
    for (const char* bytes : {"1024", "1048576"}) {
      add_link(
          fmt::format("{{\"what\":\"all_reduce\",\"algorithm\":\"ring\",\"bytes\":{},\"seconds\":"
                      "1e-4,\"cpu_seconds\":0}}",
                      bytes));
    }
  }

  void add_link(const std::string& row) const { append_line(folder.path() / "links.jsonl", row); }
  double predicted(const char* column) const {
    const Results all = predict_real(validation, options, cluster, folder.path(), {2, [] {}}).steps;
    return *all.rows.at(0).number(column);
  }

  TemporaryFolder folder;
  ValidationOptions options;
  Cluster cluster;
  Validation validation;
};

/// Two stages that wait for each other. @return mean compute of their forecast's step
/// @param message_host  by which a step was longer for a message out and one in, where that was measured
double forecast_compute(const std::string& jitter, double message_host) {
  const Measured measured(fmt::format("name: stages\nmodel: small-cnn\ntrace: small-cnn-b64-cpu\n"
                                      "platform: this-machine\nbatch_per_worker: 64\nworkers: 2\n"
                                      "strategy: {{kind: pipeline, stages: 2, micro_batches: 1, "
                                      "schedule: naive}}\nnoise: {{jitter: {}}}\n"
                                      "simulation: {{steps: 20}}\n",
                                      jitter),
                          {}, 2);
  for (const char* bytes : {"1", "1e9"})
    measured.add_link(
        fmt::format("{{\"what\":\"message_host\",\"bytes\":{},\"seconds\":{}}}", bytes, message_host));
  return measured.predicted("compute_seconds");
}

}  // namespace

TEST_CASE("the forecast contains the cores' time for messages between stages, with and without jitter",
          "[commands]") {
  // Either stage sends one and receives one: a half of message_host each.
  CHECK(forecast_compute("none", 0.02) - forecast_compute("none", 0) == Approx(0.02));
  CHECK(forecast_compute("trace", 0.02) - forecast_compute("trace", 0) == Approx(0.02));
}

namespace {

/// A forecast of two ranks (one worker, where a server takes the other) with measured links, and `rows`
/// besides.
double forecast_of(const std::string& strategy, const std::vector<std::string>& rows,
                   const char* column = "step_seconds") {
  const Measured measured(
      "name: two\nmodel: small-cnn\ntrace: small-cnn-b64-cpu\nplatform: this-machine\n"
      "batch_per_worker: 64\nsimulation: {steps: 3}\nstrategy: " +
          strategy + "\n",
      {}, 2);
  // Messages of 2 MiB both ways at once: 50 us and 2 ms.
  measured.add_link(R"({"what":"all_reduce","algorithm":"ring","bytes":4194304,"seconds":4.1e-3})");
  for (const std::string& row : rows) measured.add_link(row);
  return measured.predicted(column);
}

std::string one_way(double seconds) {
  return fmt::format(R"({{"what":"half_round_trip","algorithm":"","bytes":2097152,"seconds":{}}})", seconds);
}

/// @param network  the trace: that of blocks of local SGD has a name of its own
std::string arithmetic(const std::string& name, const std::string& network, double seconds) {
  return fmt::format(R"({{"what":"arithmetic","algorithm":"{}","network":"{}","bytes":1,"seconds":{}}})",
                     name, network, seconds);
}

}  // namespace

TEST_CASE("messages one way are as fast as they were measured, those both ways and of programs unchanged",
          "[commands]") {
  const std::string tree = "{kind: model_averaging, mini_batches: 2, aggregation: tree}";
  const std::string ring =
      "{kind: model_averaging, mini_batches: 2, aggregation: all_reduce, all_reduce: ring}";
  const std::string server = "{kind: parameter_server, server: own_device}";
  const char* const aggregate = "block_aggregate_seconds";
  // A core has twice the time for a copy one way: 50 us and 1 ms. The tree sends the model one way, twice.
  const double both = forecast_of(tree, {one_way(2.05e-3)}, aggregate);
  const double half = forecast_of(tree, {one_way(1.05e-3)}, aggregate);
  CHECK(both > half);
  CHECK(forecast_of(tree, {one_way(1e-5)}, aggregate) == Approx(half));  // not faster than twice
  CHECK(forecast_of(tree, {one_way(4e-3)}, aggregate) == Approx(both));  // not slower than both ways
  CHECK(forecast_of(ring, {one_way(1.05e-3)}, aggregate) == Approx(forecast_of(ring, {}, aggregate)));
  CHECK(forecast_of(server, {one_way(1.05e-3)}) == Approx(forecast_of(server, {})));
}

TEST_CASE("the forecast takes the measured time of a strategy's arithmetic, unless the point gives it",
          "[commands]") {
  const std::string bmuf = "{kind: bmuf, mini_batches: 2, block_momentum: 0.5}";
  const auto more = [](const std::string& strategy, const std::string& name) {
    const std::string network =
        name == "filter" || name == "average" ? "small-cnn-b64-local" : "small-cnn-b64";
    return forecast_of(strategy, {arithmetic(name, network, 0.050)}) -
           forecast_of(strategy, {arithmetic(name, network, 0.030)});
  };
  CHECK(more(bmuf, "filter") == Approx(0.020));
  CHECK(more("{kind: model_averaging, mini_batches: 2}", "average") == Approx(0.020));
  CHECK(more("{kind: elastic_averaging, server: own_device}", "elastic pull") == Approx(0.020));
  CHECK(more("{kind: gradient_energy_matching, server: own_device}", "energy matching") == Approx(0.020));
  CHECK(more("{kind: parameter_server, server: own_device}", "server update") == Approx(0.020));
  CHECK(more("{kind: bmuf, mini_batches: 2, block_momentum: 0.5, filter_bandwidth: 1 GB/s}", "filter") == 0);
  CHECK(more("{kind: parameter_server, server: own_device, apply_time: 1 ms}", "server update") == 0);
}

TEST_CASE("a strategy says by itself what a real run measures for it", "[commands]") {
  const Strategy& blocks = *find_strategy("model_averaging");
  Strategy own{"own_blocks", "a strategy of a test",
               "",           blocks.plan,
               blocks.keys,  "{kind: own_blocks, mini_batches: 2}",
               "small-cnn"};
  own.exchanges_every_step = false;
  own.continues_without_failed = true;
  own.timed_arithmetic = blocks.timed_arithmetic;
  add_strategy(own);
  const auto forecast = [&own](double seconds) {
    return forecast_of(own.example, {arithmetic("average", "small-cnn-b64-local", seconds)});
  };
  CHECK(forecast(0.050) - forecast(0.030) == Approx(0.020));
  CHECK(default_response({}, own.kind) == FailureResponse::shrink);
}

TEST_CASE("a batch of all workers is shared out, as in a forecast without real ranks", "[commands]") {
  const Measured measured(
      "name: shared\nmodel: small-cnn\ntrace: small-cnn-b64-cpu\nplatform: this-machine\n"
      "global_batch: 256\nworkers: 2\nstrategy: {kind: synchronous, accumulation: 2}\n",
      {}, 2);
  CHECK(measured.validation.variants.at(0).batch == 64);
}

TEST_CASE("a second forecast takes the times that were measured since the first", "[commands]") {
  const Measured measured(
      "name: servers\nmodel: small-cnn\ntrace: small-cnn-b64-cpu\nplatform: this-machine\n"
      "batch_per_worker: 64\nworkers: 1\nsimulation: {steps: 3}\n"
      "strategy: {kind: elastic_averaging, server: own_device}\n",
      {}, 2);
  const auto step_with = [&measured](double seconds) {
    write_atomically(links_file(measured.folder.path()), "");
    for (const char* bytes : {"1024", "1048576"})
      measured.add_link(fmt::format(R"({{"what":"all_reduce","algorithm":"ring","bytes":{},"seconds":{}}})",
                                    bytes, seconds));
    measured.add_link(arithmetic("elastic pull", "small-cnn-b64", seconds));
    return measured.predicted("step_seconds");
  };
  const double first = step_with(0.010), second = step_with(0.030);
  CHECK(second > first + 0.020 + 0.015);  // the arithmetic, and slower messages
}

TEST_CASE("the algorithms that the forecast chose are frozen for the ranks", "[commands]") {
  const Measured measured(
      "name: sums\nmodel: small-cnn\ntrace: small-cnn-b64-cpu\nplatform: this-machine\n"
      "batch_per_worker: 64\nworkers: 4\nsimulation: {steps: 3}\n"
      "strategy: {kind: synchronous, bucket: 100 kB}\n",
      {}, 4);
  const auto& folder = measured.folder.path();
  const RealForecast forecast =
      predict_real(measured.validation, measured.options, measured.cluster, folder, {2, [] {}});
  freeze(forecast, folder);
  Library library;
  const Plan plan = measured_experiment(measured.validation, 0, folder, {}, library).plan;
  const std::string point = measured.validation.scenario.points[0].name;
  const AllReduceChoices choices = read_all_reduces(all_reduce_file(folder), point, plan);
  CHECK(choices.size() == plan.collectives.size());
  std::set<std::string> names;
  for (const auto& [collective, choice] : choices)
    names.insert(algorithm_names().at(static_cast<std::size_t>(choice.algorithm)));
  CHECK(fmt::format("{}", fmt::join(names, ", ")) == forecast.steps.rows.at(0).text("all_reduce"));
  CHECK_THAT(read_file(folder / "predicted.sha256"),
             Catch::Contains(sha256(read_file(all_reduce_file(folder))) + "  predicted-all-reduces.csv"));
}

TEST_CASE("with a target loss, what the ranks will learn is forecast and frozen", "[commands]") {
  const auto forecast_in = [](const Measured& measured) {
    const auto& folder = measured.folder.path();
    RealForecast forecast =
        predict_real(measured.validation, measured.options, measured.cluster, folder, {2, [] {}});
    freeze(forecast, folder);
    return forecast;
  };
  const std::string scenario =
      "name: learns\nmodel: small-cnn\ntrace: small-cnn-b64-cpu\nplatform: this-machine\n"
      "batch_per_worker: 64\nworkers: 2\nsimulation: {steps: 3}\n"
      "strategy: {kind: synchronous, all_reduce: ring}\n"
      "learning: {mini_batches: 2, evaluate_every: 1, seeds: 2, learning_rate: 0.005, "
      "data: {kind: images, samples: 256, test_samples: 16}}\n";
  ValidationOptions with_target;
  with_target.settings = {"learning.target_loss=1"};
  const Measured measured(scenario, with_target, 2);
  const RealForecast forecast = forecast_in(measured);
  CHECK(forecast.learning.target_loss == 1);
  const std::vector<Row>& rows = forecast.learning.rows.rows;
  REQUIRE(rows.size() == 2 * 3);  // after 0, 1 and 2 mini-batches
  CHECK(rows[2].number("step") == 2);
  CHECK(rows[2].number("samples") == 2 * 2 * 64);
  CHECK(*rows[2].number("seconds") - *rows[1].number("seconds") ==
        Approx(*forecast.steps.rows.at(0).number("step_seconds")));
  CHECK(rows[3].number("seed") == 2);
  CHECK(rows[3].number("loss") != rows[0].number("loss"));
  const auto& folder = measured.folder.path();
  CHECK_THAT(
      read_file(folder / "predicted.sha256"),
      Catch::Contains(sha256(read_file(folder / "predicted-learning.csv")) + "  predicted-learning.csv"));

  const auto check = [](const Measured& one, const LearningLimits& limits) {
    check_points(one.validation, one.options, one.cluster, limits);
  };
  CHECK_NOTHROW(check(measured, {2, "", ""}));
  CHECK_THROWS_WITH(check(measured, {2, "1 MiB", ""}), Catch::Contains("of about"));
  CHECK_THROWS_WITH(check(measured, {2, "", "1 us"}), Catch::Contains("trainings need about"));
  const Measured without_target(scenario, {}, 2);
  CHECK_NOTHROW(check(without_target, {2, "1 MiB", "1 us"}));
  CHECK(forecast_in(without_target).learning.rows.rows.empty());
  CHECK(!std::filesystem::exists(without_target.folder.path() / "predicted-learning.csv"));
}

TEST_CASE("workers without a common pace are forecast as the mean over when they start", "[commands]") {
  ValidationOptions sleeping;
  sleeping.sleep = true;
  const Measured measured(
      "name: servers\nmodel: small-cnn\ntrace: small-cnn-b64-cpu\nplatform: this-machine\n"
      "batch_per_worker: 64\nworkers: 2\n"
      "strategy: {kind: parameter_server, server: own_device, apply_time: 20 ms}\n"
      "noise: {jitter: lognormal, sigma: 0.3, start_spread: 50 ms}\nsimulation: {steps: 6}\n",
      sleeping, 3);
  const double mean = measured.predicted("step_seconds");
  Library library;
  std::vector<Task> tasks;  // one simulation a process
  for (int start = 0; start < 13; ++start) {
    Experiment one = measured_experiment(measured.validation, 0, measured.folder.path(), {}, library);
    if (start > 0) one.noise.start_spread *= 0.5 + (start - 0.5) / 12;  // from a half to one and a half
    tasks.push_back([one] { return shortest(*simulate_point(one).number("step_seconds")); });
  }
  double sum = 0, least = 1e9, most = 0;
  run_tasks(tasks, 2, [&](std::size_t, const std::string& text) {
    const double seconds = std::stod(text);
    sum += seconds;
    least = std::min(least, seconds);
    most = std::max(most, seconds);
  });
  CHECK(mean == Approx(sum / 13));
  CHECK(most > 1.001 * least);  // when they start matters here
}

TEST_CASE("networks over machines, replicas of these and searches are run for real", "[commands]") {
  for (const char* strategy :
       {"{kind: model_parallel, machines: 2}",
        "{kind: parameter_server, server: colocated, machines_per_replica: 2, shards: 2}",
        "{kind: search, folds: 2, ranks: 2}"}) {
    CAPTURE(strategy);
    TemporaryFolder folder;
    ValidationOptions options;
    options.scenario = (folder.path() / "scenario.yaml").string();
    write_atomically(options.scenario,
                     std::string("name: run\nmodel: tiny-local\ntrace: derived\nplatform: this-machine\n"
                                 "batch_per_worker: 8\nworkers: 2\nstrategy: ") +
                         strategy + "\nsimulation: {steps: 3}\n");
    const Validation validation = read_validation(options, 4, placeholder_platform({.ranks = 4}));
    CHECK_NOTHROW(check_points(validation, options, {.ranks = 4}, {}));
  }
}

TEST_CASE("a point that cannot be run for real is refused before anything is measured", "[commands]") {
  const auto refuse = [](const std::string& strategy, const std::string& why) {
    TemporaryFolder folder;
    ValidationOptions options;
    options.scenario = (folder.path() / "scenario.yaml").string();
    write_atomically(options.scenario,
                     "name: refused\nmodel: small-cnn\ntrace: small-cnn-b64-cpu\nplatform: this-machine\n"
                     "batch_per_worker: 64\nstrategy: " +
                         strategy + "\nsimulation: {steps: 3}\n");
    const Validation validation = read_validation(options, 2, placeholder_platform({.ranks = 2}));
    CHECK_THROWS_WITH(check_points(validation, options, {.ranks = 2}, {}), Catch::Contains(why));
  };
  refuse("{kind: parameter_server, server: colocated}", "it needs 3 ranks, servers included; give --ranks 3");
  refuse("{kind: synchronous, compression: fp16, all_reduce: halving_doubling}",
         "compressed gradients need all_reduce: ring");
  refuse("{kind: filter_parallel, ways: 2}", "simulated only");
}

TEST_CASE("an earlier validation must have the traces of a partition's parts", "[validate]") {
  const Measured measured(
      "name: parts\nmodel: small-mesh\ntrace: small-cnn-b64-cpu\nplatform: this-machine\n"
      "batch_per_worker: 4\nworkers: 2\nstrategy: {kind: spatial, split: 2}\n",
      {}, 2);
  const std::filesystem::path& earlier = measured.folder.path();
  const std::vector<std::string> files = measured_files(measured.validation);
  REQUIRE(files.size() == 3);  // links, the whole network and a part
  for (const std::string& file : files) {
    if (std::filesystem::exists(earlier / file)) continue;
    REQUIRE_THROWS_WITH(check_earlier(measured.validation, earlier),
                        Catch::Contains("--measured-in: expected") && Catch::Contains(file));
    write_atomically(earlier / file, "");
  }
  CHECK_NOTHROW(check_earlier(measured.validation, earlier));
}
