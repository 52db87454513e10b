#include "forecast/simulate_point.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <filesystem>
#include <fstream>

#include "forecast/forecast.hpp"
#include "rows.hpp"
#include "tests/scenarios/scenario_text.hpp"
#include "tests/sim/child.hpp"

using namespace stepcast;

namespace {

/// A row of 2 s a step, 100 h of training.
Row trained() {
  Row row;
  row.set("step_seconds", 2.0);
  row.set("training_hours", 100.0);
  return row;
}

}  // namespace

TEST_CASE("a scenario without faults and campaign gets no columns of them", "[commands]") {
  Row row = trained();
  set_training_columns(row, Experiment{});
  CHECK(row.cells.size() == 2);
}

TEST_CASE("columns of faults add up to the training with faults", "[commands]") {
  Experiment experiment;
  experiment.faults.emplace();
  Faults& faults = experiment.faults->faults;
  faults.nodes = 10;
  faults.node_mtbf = {10 * 20'000.0};
  faults.restart = {100};
  faults.checkpoints = {{1800}, {30}};
  faults.slow = {0.1, 2, {500}, {5000}};
  Row row = trained();
  set_training_columns(row, experiment);
  double lost = 0;
  for (const char* column :
       {"lost_to_checkpoints_seconds", "lost_to_rework_seconds", "lost_to_restart_seconds",
        "lost_to_missing_workers_seconds", "lost_to_slow_workers_seconds"}) {
    lost += *row.number(column);
  }
  CHECK(3600 * *row.number("training_hours_with_faults") == Approx(360'000 + lost));
  CHECK(*row.number("useful_share") == Approx(360'000 / (360'000 + lost)));
  CHECK(*row.number("young_checkpoint_interval_seconds") == Approx(std::sqrt(2 * 30 * 20'000.0)));
  const double best = *row.number("best_checkpoint_interval_seconds");
  CHECK(best ==
        Approx(*row.number("daly_checkpoint_interval_seconds")).epsilon(0.25));  // 64 draws, 18 failures

  experiment.faults->best_interval = true;
  Row at_best = trained();
  set_training_columns(at_best, experiment);
  CHECK(at_best.number("training_hours_with_faults") < row.number("training_hours_with_faults"));
}

TEST_CASE("steps of a training come before the scenario's epochs", "[commands]") {
  Experiment experiment;
  experiment.faults.emplace();
  experiment.faults->steps = 1800;
  Row row = trained();
  set_training_columns(row, experiment);
  CHECK(*row.number("training_hours_with_faults") == Approx(1));
}

TEST_CASE("a campaign is made of trainings with faults, and its shares are all of the time", "[commands]") {
  Experiment experiment;
  experiment.campaign.emplace();
  Campaign& campaign = experiment.campaign->campaign;
  campaign.points = 6;
  campaign.groups = 3;
  campaign.training_devices = 4;
  Row row = trained();
  set_training_columns(row, experiment);
  CHECK(*row.number("makespan_hours") == Approx(200));
  CHECK(row.number("campaign_devices") == 13);
  double shares = 0;
  for (const char* column : {"device_utilization", "idle_optimizer_share", "idle_fold_share",
                             "idle_generation_share", "idle_tail_share", "idle_driver_share"}) {
    shares += *row.number(column);
  }
  CHECK(shares == Approx(1));
  CHECK(*row.number("device_utilization") == Approx(12.0 / 13));

  experiment.faults.emplace();
  experiment.faults->faults.slow = {0.5, 3};  // all wait for slow workers: three times as long
  Row slow = trained();
  set_training_columns(slow, experiment);
  CHECK(*slow.number("makespan_hours") == Approx(600));
}

TEST_CASE("a training that never ends has no time", "[commands]") {
  Experiment experiment;
  experiment.faults.emplace();
  Faults& faults = experiment.faults->faults;
  faults.node_mtbf = {1000};
  faults.checkpoints = {{360'000}, {10}};
  experiment.campaign.emplace();
  Row row = trained();
  set_training_columns(row, experiment);
  CHECK(std::get<bool>(row.at("training_finishes")) == false);
  CHECK_FALSE(row.number("training_hours_with_faults"));
  CHECK_FALSE(row.number("makespan_hours"));
}

namespace {

const std::string kStart =
    "name: tiny\nmodel: small-cnn\ntrace: small-cnn-b64-cpu\nplatform: ethernet-cpu\n"
    "strategy: {kind: synchronous}\n";
const std::string kNoisy = kStart +
                           "noise: {jitter: lognormal, sigma: 0.1}\nsimulation: {steps: 2}\n"
                           "sweep: {workers: [8]}\n";

Simulations forecast_of(const std::string& text) {
  ForecastOptions options;
  options.points = {0};
  Library library;
  return forecast(scenario_of(text), library, options);
}

}  // namespace

TEST_CASE("a pipeline takes as long by default as with every message simulated", "[commands]") {
  // 512 workers: the first run folds roughly, the bounds show contention, and a third run is exact.
  const auto step = [](const std::string& fidelity) {
    return number_from_child([&] {
      const Scenario scenario = scenario_of(
          "name: gpt\n"
          "model: {name: gpt, source: test, sample: sequence, transformer_stack: {layers: 8, width: 256, "
          "heads: 8, sequence: 128, vocabulary: 1024}}\n"
          "trace: derived\nplatform: dgx-a100\nworkers: 512\n"
          "global_batch: 2048\nstrategy: {kind: pipeline, stages: 2, tensor: 8, micro_batches: 4}\n"
          "simulation: {steps: 1, fidelity: " +
          fidelity + "}\n");
      Library library;
      const std::vector<Assignment> nodes{parse_assignment("platform.nodes=64")};
      const Experiment experiment = build_experiment(scenario.document, nodes, library);
      const Row row = simulate_point(experiment, nullptr, StepStatistic::median);
      CHECK(std::get<std::string>(row.at("fidelity")) == "message");
      return *row.number("step_seconds");
    });
  };
  CHECK(step("automatic") == Approx(step("message")).epsilon(1e-9));
}

namespace {

/// A column of a step of GPT-2 on eight A100.
double of_gpt2(const std::string& column, const std::string& strategy) {
  return number_from_child([&] {
    const Scenario scenario = scenario_of(
        "name: t\nmodel: gpt2-small\ntrace: derived\nkernels: {precision: bf16, attention: flash}\nplatform: "
        "dgx-a100\nworkers: 8\nbatch_per_worker: 4\nstrategy: " +
        strategy + "\nepoch: {tokens: 1e9}\n");
    Library library;
    const Experiment experiment = build_experiment(scenario.document, {}, library);
    return *simulate_point(experiment).number(column);
  });
}

}  // namespace

TEST_CASE("ZeRO with recomputation repeats the forward pass and keeps fewer activations", "[commands]") {
  const std::string zero = "{kind: zero, stage: 2, compute_slowdown: 1", again = ", recompute: true}";
  const double once = of_gpt2("compute_seconds", zero + "}"),
               twice = of_gpt2("compute_seconds", zero + again);
  // A backward pass takes twice as long as a forward pass, of which the vocabulary, about a quarter of the
  // work, is not computed again.
  CHECK(twice > (1 + 0.5 / 3) * once);
  CHECK(twice < (1 + 0.75 / 3) * once);
  CHECK(of_gpt2("memory_bytes", zero + again) < 0.7 * of_gpt2("memory_bytes", zero + "}"));
}

TEST_CASE("a network of unknown sizes has no memory, and neither fits nor does not", "[commands]") {
  const auto folder = std::filesystem::temp_directory_path() / ("stepcast-sizes-" + std::to_string(getpid()));
  std::filesystem::create_directory(folder);
  std::ofstream(folder / "t.yaml")
      << "name: t\nkind: captured\nthreads: 1\nmodel: m\nbatch: 8\ndevice: d\nprecision: f32\nlibrary: "
         "l\ncommand: c\nsource: "
         "s\nlayers:\n"
         "  - {name: a, forward: {seconds: [1e-3]}, backward_data: {seconds: [1e-3]}}\n";
  const auto known = [&](const std::string& size) {
    return number_from_child([&] {
      const Scenario scenario =
          scenario_of("name: t\nmodel: {name: m, source: s, input: [" + size +
                      "], layers: [{name: a, kind: measured, output: [" + size +
                      "], parameters: [1000]}]}\ntrace: " + (folder / "t.yaml").string() +
                      "\nplatform: dgx1v\nworkers: 8\nbatch_per_worker: 8\nstrategy: {kind: synchronous}\n");
      Library library;
      const Row row = simulate_point(build_experiment(scenario.document, {}, library));
      const bool memory = row.number("memory_bytes").has_value(), fits = !row.text("fits").empty();
      return (memory ? 1.0 : 0.0) + (fits ? 2.0 : 0.0);
    });
  };
  CHECK(known("2") == 3);
  CHECK(known("1") == 0);
  std::filesystem::remove_all(folder);
}

TEST_CASE("GPUs without noise wait for the slowest of equal devices, and asynchronous ones do not",
          "[forecast]") {
  const auto of = [](const std::string& column, const std::string& strategy, const std::string& more) {
    return number_from_child([&] {
      const Scenario scenario = scenario_of(
          "name: t\nmodel: small-cnn\ntrace: derived\nplatform: dgx1v\nworkers: 8\nbatch_per_worker: 64\n"
          "strategy: " +
          strategy + "\n" + more);
      Library library;
      return *simulate_point(build_experiment(scenario.document, {}, library)).number(column);
    });
  };
  const std::string none = "noise: {device_spread: 0}\n", usual = "noise: {device_spread: 0.015}\n";
  const std::string synchronous = "{kind: synchronous}";
  const double compute = of("compute_seconds", synchronous, none);
  CHECK(of("waiting_seconds", synchronous, none) == Approx(0).margin(1e-12));
  CHECK(of("compute_seconds", synchronous, "") == Approx(compute));
  CHECK(of("step_seconds", synchronous, "") == of("step_seconds", synchronous, usual));
  // 1.424 is the expected maximum of eight standard normal variables (H. L. Harter, Biometrika 48, 1961).
  CHECK(of("waiting_seconds", synchronous, "") ==
        Approx(compute * (std::exp(0.015 * 1.424) - 1)).epsilon(0.01));
  const std::string servers = "{kind: parameter_server}";
  CHECK(of("step_seconds", servers, usual) == of("step_seconds", servers, none));
}

TEST_CASE("workers with unequal samples wait for the largest, and asynchronous ones do not", "[forecast]") {
  const auto step = [](const std::string& strategy, double imbalance) {
    return number_from_child([&] {
      const Scenario scenario = scenario_of(fmt::format(
          "name: t\nmodel: small-cnn\ntrace: derived\nplatform: dgx1v\nworkers: 8\nbatch_per_worker: 8192\n"
          "strategy: {{kind: {}}}\nnoise: {{device_spread: 0}}\nsimulation: {{steps: 2000}}\n"
          "data: {{imbalance: {}}}\n",
          strategy, imbalance));
      Library library;
      return *simulate_point(build_experiment(scenario.document, {}, library)).number("step_seconds_mean");
    });
  };
  // 1.313 is the expected maximum of eight lognormal variables of mean 1 and sigma 0.2, by quadrature.
  CHECK(step("synchronous", 0.2) == Approx(1.313 * step("synchronous", 0)).epsilon(0.02));
  CHECK(step("parameter_server", 0.2) == Approx(step("parameter_server", 0)).epsilon(0.05));
}

TEST_CASE("a language model has tokens, work and its share of the peak for each device", "[commands]") {
  const std::string strategy = "{kind: synchronous}";
  const double samples = of_gpt2("samples_per_second", strategy);
  CHECK(of_gpt2("tokens_per_second", strategy) == Approx(1024 * samples));
  CHECK(of_gpt2("tokens_per_second_per_device", strategy) == Approx(128 * samples));
  const double flops = of_gpt2("model_flops_per_device", strategy);
  CHECK(of_gpt2("mfu", strategy) == Approx(flops / 312e12));
  CHECK(of_gpt2("mfu_palm", strategy) == Approx(of_gpt2("mfu", strategy)).epsilon(0.02));
  CHECK(of_gpt2("training_hours", strategy) == Approx(1e9 / 1024 / samples / 3600));
}

TEST_CASE("a factor on layer times is one on the updates of shares too", "[commands]") {
  const auto compute = [](double factor) {
    return number_from_child([&] {
      const Scenario scenario = scenario_of(
          fmt::format("name: t\nmodel: small-mlp\ntrace: derived\nplatform: dgx-a100\nworkers: 16\n"
                      "batch_per_worker: 4\nstrategy: {{kind: zero, stage: 2, compute_factor: {}}}\n",
                      factor));
      Library library;
      const Experiment experiment = build_experiment(scenario.document, {}, library);
      return *simulate_point(experiment).number("compute_seconds");
    });
  };
  CHECK(compute(0.5) == Approx(compute(1) / 2).epsilon(1e-9));
}

TEST_CASE("the cost of jitter and stragglers is the difference to runs without them", "[commands]") {
  Row row = row_of(8, 100, 10);
  const Row with = row;
  add_noise_losses(row, with, {});
  CHECK_FALSE(row.number("jitter_seconds"));
  add_noise_losses(row, with, {{Without::jitter, row_of(8, 125, 8)}, {Without::noise, row_of(8, 200, 5)}});
  CHECK(row.number("jitter_seconds") == 2);
  CHECK(row.number("straggler_seconds") == 3);
  CHECK_FALSE(row.number("lost_to_jitter_seconds"));

  row.set("training_hours_with_faults", 20.0);
  row.set("useful_share", 0.5);  // 3,600 steps of 10 s, of which 2 s and 3 s
  add_noise_losses(row, with, {{Without::noise, row_of(8, 200, 5)}});
  CHECK(row.number("lost_to_stragglers_seconds") == Approx(3600 * 5));
}

TEST_CASE("noise is left out kind by kind, and only where there is some", "[commands]") {
  Noise noise;
  CHECK_FALSE(leave_out(Without::noise, noise));
  noise = {Noise::Jitter::lognormal, 0.1, false, 0.2, 3};
  CHECK(leave_out(Without::jitter, noise));
  CHECK(noise.jitter == Noise::Jitter::none);
  CHECK(noise.straggler_share == 0.2);
  CHECK_FALSE(leave_out(Without::jitter, noise));
  CHECK(leave_out(Without::noise, noise));
  CHECK(noise.straggler_share == 0);
}

TEST_CASE("a point with noise is simulated without it too, kind by kind", "[commands]") {
  const std::string slow = ", straggler_share: 0.5, straggler_factor: 3}\nsimulation";
  std::string text = kNoisy;
  const Simulations jitter = forecast_of(text);
  REQUIRE(jitter.without.at(0).size() == 1);  // nobody is slow
  const auto seconds = [](const Row& row) { return row.number("step_seconds").value(); };
  const double calm = seconds(jitter.without[0].at(Without::jitter));
  CHECK(calm < seconds(jitter.rows[0][0]));  // the slowest of eight is late

  text.replace(text.find("}\nsimulation"), std::string("}\nsimulation").size(), slow);
  const Simulations both = forecast_of(text);
  REQUIRE(both.without.at(0).size() == 2);
  CHECK(seconds(both.without[0].at(Without::noise)) == Approx(calm).epsilon(1e-12));
  CHECK(seconds(both.without[0].at(Without::jitter)) > 2 * calm);

  const std::string quiet = kStart + "sweep: {workers: [2]}\n";
  CHECK(forecast_of(quiet).without.at(0).empty());
  CHECK(extra_simulations(scenario_of(quiet)) == 0);
  CHECK(extra_simulations(scenario_of(kNoisy)) == 1);
  CHECK(extra_simulations(scenario_of(text)) == 2);
  CHECK(extra_simulations(scenario_of(quiet + "set: {noise.straggler_share: 0.5}\n")) == 1);
}

TEST_CASE("the step time, its parts and the rate are means over the steps, or those of the median step",
          "[commands]") {
  const Experiment noisy = shipped_experiment(
      "resnet50-ethernet-cpu", {"workers=4", "noise={jitter: lognormal, sigma: 0.5}", "simulation.steps=20"});
  const auto columns = [&noisy](StepStatistic statistic) {
    return numbers_from_child(8, [&] {
      const Row row = simulate_point(noisy, nullptr, statistic);
      std::vector<double> values;
      for (const char* name :
           {"step_seconds", "step_seconds_mean", "compute_seconds", "waiting_seconds", "data_loading_seconds",
            "exposed_communication_seconds", "samples_per_second", "global_batch"})
        values.push_back(*row.number(name));
      return values;
    });
  };
  const auto median = columns(StepStatistic::median), mean = columns(StepStatistic::mean);
  CHECK(mean[0] == mean[1]);
  CHECK(mean[1] == median[1]);
  CHECK(mean[0] != median[0]);
  // Workers begin a step at different times, so the parts of few steps add up only nearly.
  CHECK(mean[0] == Approx(mean[2] + mean[3] + mean[4] + mean[5]).epsilon(0.01));
  for (const auto& of : {median, mean}) CHECK(of[6] == Approx(of[7] / of[0]));
}

TEST_CASE("a training takes the power of its devices for its hours", "[forecast]") {
  Experiment experiment = shipped_experiment("resnet50-ethernet-cpu", {"workers=4", "simulation.steps=1"});
  experiment.epochs = 90;
  experiment.device.watts = 250;
  const auto got = numbers_from_child(2, [&] {
    const Row row = simulate_point(experiment);
    return std::vector<double>{row.number("training_hours").value_or(-1),
                               row.number("energy_kwh").value_or(-1)};
  });
  CHECK(got[1] == Approx(got[0] * 4 * 0.250));
}

TEST_CASE("one process copies the inputs of all devices of a server before a step", "[forecast]") {
  const Scenario scenario = scenario_of(
      "name: n\nmodel: small-cnn\ntrace: derived\nplatform: dgx1v\nbatch_per_worker: 64\n"
      "noise: {jitter: none}\nstrategy: {kind: synchronous, host_operation: 0 s}\nsweep: {workers: [8]}\n");
  Library library;
  const auto step = [&](const std::vector<std::string>& more) {
    auto values = scenario.points.front().values;
    for (const std::string& one : more) values.push_back(parse_assignment(one));
    return *simulate_point(build_experiment(scenario.document, values, library)).number("step_seconds");
  };
  const double bare = step({}), input = 8 * 64 * 4.0 * 28 * 28;  // bytes of all devices
  CHECK(step({"strategy.input_rate=1 GB/s"}) - bare == Approx(input / 1e9));
  CHECK(step({"strategy.input_rate=1 GB/s", "strategy.accumulation=2"}) - step({"strategy.accumulation=2"}) ==
        Approx(input / 1e9));  // in half the samples each
  CHECK(step({"strategy.host_turn=1 ms", "factors.host_work=2"}) - bare == Approx(16e-3));
}
