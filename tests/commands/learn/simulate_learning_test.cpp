#include <fmt/format.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <filesystem>
#include <fstream>

#include "commands/learn/learning_points.hpp"
#include "forecast/processes/process_pool.hpp"
#include "forecast/simulate_point.hpp"
#include "report/results/results.hpp"
#include "runtime/learning/learning_runs.hpp"
#include "runtime/scenario_points/validation_plan.hpp"
#include "scenarios/reader/scenario.hpp"
#include "sim/simulation.hpp"

using namespace stepcast;

// Values in a simulation: what a strategy must equal, whatever the clock does.

namespace {

constexpr const char* kScenario = R"(
model: small-cnn
trace: small-cnn-b64-cpu
platform: ethernet-cpu
batch_per_worker: 16
strategy: {kind: synchronous}
simulation: {steps: 4, seed: 1}
noise: {jitter: lognormal, sigma: 0.3}
learning:
  mini_batches: 4
  evaluate_every: 2
  optimizer: momentum
  learning_rate: 0.02
  data: {kind: images, samples: 256, test_samples: 50, noise: 1}
)";

Experiment experiment_of(const std::vector<std::string>& settings) {
  std::vector<Assignment> values;
  for (const std::string& text : settings) values.push_back(parse_assignment(text));
  Library library;
  Experiment experiment = build_experiment(parse_yaml(kScenario, "learns.yaml"), values, library);
  for (Layer& layer : experiment.model.layers) {
    if (layer.kind == LayerKind::dropout) layer.coefficient = 0;  // drawn by each rank for itself
  }
  return experiment;
}

/// Settings of a GAN of showers.
std::vector<std::string> with_gan(std::vector<std::string> settings) {
  for (const char* setting : {"model=tiny-gan", "trace=derived", "learning.discriminator=disc_c1",
                              "learning.data={kind: showers, samples: 256, test_samples: 50, noise: 0.1}"})
    settings.emplace_back(setting);
  return settings;
}

/// Rows of a run, from a process of its own: (seconds, loss) of each evaluation.
std::vector<std::pair<double, double>> curve(const std::vector<std::string>& settings,
                                             std::int64_t batch = 16) {
  const Task task = [&] {
    std::string text;
    for (const EvaluatedLoss& one : simulate_learning(experiment_of(settings), batch).evaluations)
      text += to_json_line({}, to_row(one)) + "\n";
    return text;
  };
  std::vector<std::pair<double, double>> points;
  run_tasks({task}, 1, [&](std::size_t, const std::string& text) {
    for (const Row& row : read_json_lines(text, "a run").rows)
      points.emplace_back(*row.number("seconds"), *row.number("loss"));
  });
  return points;
}

/// Compares losses of few mini-batches, which change a network but need not improve it.
void check_close(const std::vector<std::pair<double, double>>& one,
                 const std::vector<std::pair<double, double>>& other) {
  REQUIRE(one.size() == other.size());
  CHECK(one.back().second != one.front().second);
  for (std::size_t i = 0; i < one.size(); ++i) CHECK(one[i].second == Approx(other[i].second).epsilon(1e-5));
}

void check_same_losses(const std::vector<std::pair<double, double>>& one,
                       const std::vector<std::pair<double, double>>& other) {
  REQUIRE(one.size() == 3);  // before, and after two and four mini-batches
  REQUIRE(other.size() == 3);
  CHECK(one.back().second < one.front().second);
  for (std::size_t i = 0; i < 3; ++i) CHECK(one[i].second == Approx(other[i].second).epsilon(1e-4));
}

}  // namespace

TEST_CASE("simulated workers that sum gradients learn what one learns with all their samples", "[commands]") {
  const auto one = curve({"workers=1", "batch_per_worker=64"}, 64);
  for (const char* choice : {"ring", "halving_doubling", "double_tree", "automatic"}) {
    CAPTURE(choice);
    check_same_losses(one, curve({"workers=4", std::string("strategy.all_reduce=") + choice}));
  }
  check_same_losses(one, curve({"workers=4", "strategy={kind: zero, stage: 1}"}));
  check_same_losses(one, curve({"workers=2", "batch_per_worker=32", "strategy.accumulation=2"}));
}

TEST_CASE("simulated workers that train a generator against a discriminator learn what one learns",
          "[commands]") {
  const auto one = curve(with_gan({"workers=1", "batch_per_worker=64"}), 64);
  check_same_losses(one, curve(with_gan({"workers=4", "strategy.all_reduce=ring"})));
  const auto elastic =
      curve(with_gan({"workers=4", "strategy={kind: elastic_averaging, period: 1, elastic_force: 0.1}"}));
  CHECK(elastic.back().second < elastic.front().second);
}

TEST_CASE("one simulated worker of any strategy is plain SGD", "[commands]") {
  const auto plain = curve({"workers=1"});
  for (const char* strategy : {"{kind: parameter_server}", "{kind: model_averaging, mini_batches: 1}",
                               "{kind: bmuf, mini_batches: 1, block_momentum: 0, block_learning_rate: 1}"}) {
    CAPTURE(strategy);
    check_same_losses(plain, curve({"workers=1", std::string("strategy=") + strategy}));
  }
}

TEST_CASE("gradients of asynchronous workers are applied in the order of the simulated clock", "[commands]") {
  const std::vector<std::string> settings{"workers=3", "strategy={kind: parameter_server}"};
  const auto fast = curve(settings);
  CHECK(curve(settings) == fast);  // to the bit
  auto slow_settings = settings;
  slow_settings.push_back("platform.network.bandwidth=100 kB/s");
  const auto slow = curve(slow_settings);
  REQUIRE(slow.size() == fast.size());
  CHECK(slow.back().first > 10 * fast.back().first);
  CHECK(slow.back().second != fast.back().second);  // others' gradients come later
}

TEST_CASE("experiments that cannot learn in a simulation are refused with the reason", "[commands]") {
  CHECK(unsupported_simulated_learning(experiment_of({"workers=2"})).empty());
  CHECK(unsupported_simulated_learning(
            experiment_of({"workers=2", "strategy={kind: elastic_averaging, exchanged: 1 MB}"})) ==
        "strategy.exchanged: parameters of another size than the model's is only timed in real runs, so no "
        "network can learn with it");
  CHECK(unsupported_simulated_learning(
            experiment_of({"workers=4", "strategy={kind: elastic_averaging, sub_masters: 2}"}))
            .empty());
  for (const char* strategy :
       {"strategy={kind: pipeline, stages: 2, micro_batches: 4}", "strategy={kind: zero, stage: 1}"})
    CHECK_THAT(unsupported_simulated_learning(experiment_of(with_gan({"workers=2", strategy}))),
               Catch::StartsWith("learning.discriminator: only a strategy whose workers train the whole"));
  const Experiment shared =
      experiment_of({"workers=4", "strategy={kind: parameter_server, machines_per_replica: 2, shards: 2}"});
  CHECK(unsupported_simulated_learning(shared).empty());
  CHECK(unsupported_in_real_run(shared.plan, 8, false) ==
        "simulated only: a part of layer dropout2 (dropout) would drop other elements");
  const Experiment halos = experiment_of({"workers=2", "strategy={kind: spatial, split: 2}"});
  CHECK(unsupported_in_real_run(halos.plan, 2, false).empty());
  for (const char* strategy : {"{kind: model_parallel, machines: 2}",
                               "{kind: spatial, split: 2, batch_norm: local, recompute: true}"}) {
    CAPTURE(strategy);
    CHECK(unsupported_simulated_learning(experiment_of(
              {"model=tiny-cnn", "trace=derived", "workers=2", std::string("strategy=") + strategy})) ==
          "simulated only: batch-norm statistics of other samples than those of the group");
  }
  CHECK(unsupported_simulated_learning(
            experiment_of({"workers=2", "strategy={kind: filter_parallel, ways: 2, precision: mixed}"})) ==
        "simulated only: activations of 2 bytes");
  CHECK(unsupported_simulated_learning(experiment_of(
            {"model=small-language-model", "trace=derived", "workers=2",
             "strategy={kind: synchronous, precision: f32, mesh: {context: 2}, context_exchange: "
             "all_to_all}"})) ==
        "divided tokens (sequence_parallel, mesh.context): only real ranks learn with them");
  CHECK(unsupported_simulated_learning(
            experiment_of({"workers=2", "strategy={kind: filter_parallel, ways: 2, recompute: true}"})) ==
        "simulated only: recomputation of dropout, which would drop other elements the second time");
}

TEST_CASE("simulated ranks that share a network learn what one rank with the whole network learns",
          "[commands]") {
  const auto one = curve({"workers=1"});
  for (const char* strategy : {"{kind: spatial, split: 2, halo_overlap: false}", "{kind: spatial, split: 2}",
                               "{kind: spatial, split: 2, halo_overlap: false, whole_from: conv2}"}) {
    CAPTURE(strategy);
    check_same_losses(one, curve({"workers=2", std::string("strategy=") + strategy}));
  }
  for (const char* strategy : {"{kind: pipeline, stages: 2, micro_batches: 4, schedule: gpipe}",
                               "{kind: pipeline, stages: 2, micro_batches: 4, schedule: 1f1b}",
                               "{kind: pipeline, stages: 2, micro_batches: 4, recompute: true}"}) {
    CAPTURE(strategy);
    check_same_losses(one, curve({"workers=2", std::string("strategy=") + strategy}, 4));
  }
  // Two replicas of two stages, and of two spatial shards; each replica has half of the samples.
  check_same_losses(one, curve({"workers=4", "batch_per_worker=8",
                                "strategy={kind: pipeline, stages: 2, micro_batches: 2, zero: 1, "
                                "all_reduce: ring}"},
                               4));
  check_same_losses(one, curve({"workers=4", "batch_per_worker=8",
                                "strategy={kind: spatial, split: 2, halo_overlap: false}"},
                               8));
}

TEST_CASE("simulated groups, also those whose parts no kernel computes, learn what one rank learns",
          "[commands]") {
  const auto one = curve({"workers=1"});
  for (const std::string strategy : {"kind: spatial, split: 2", "kind: spatial, split: 4, whole_from: conv2",
                                     "kind: filter_parallel, ways: 2", "kind: model_parallel, machines: 2",
                                     "kind: model_parallel, machines: 4, overlap: false"}) {
    CAPTURE(strategy);
    const std::string workers = strategy.find(": 4") == std::string::npos ? "workers=2" : "workers=4";
    check_same_losses(one, curve({workers, fmt::format("strategy={{{}}}", strategy)}));
    check_same_losses(one, curve({workers, fmt::format("strategy={{{}, accumulation: 2}}", strategy)}, 8));
    // Two groups, each with half of the samples.
    const std::string twice = workers == "workers=2" ? "workers=4" : "workers=8";
    check_same_losses(one, curve({twice, "batch_per_worker=8", fmt::format("strategy={{{}}}", strategy)}, 8));
  }
}

TEST_CASE("simulated ranks that share hidden units learn what one rank learns", "[commands]") {
  const std::filesystem::path file =
      std::filesystem::temp_directory_path() / fmt::format("stepcast-block-{}.yaml", getpid());
  std::ofstream(file) << R"(
name: block
source: test
input: [6, 4]
layers:
  - {name: embed, kind: dense, units: 8}
  - {name: expand, kind: dense, units: 12}
  - {name: gelu, kind: gelu}
  - {name: contract, kind: dense, units: 8}
  - {name: add, kind: add, inputs: [contract, embed]}
  - {name: flatten, kind: reshape, shape: [48]}
  - {name: classes, kind: dense, units: 3}
  - {name: loss, kind: softmax_cross_entropy}
)";
  const auto with = [&](std::vector<std::string> settings, std::int64_t batch) {
    settings.insert(settings.end(), {"model=" + file.string(), "trace=derived",
                                     "learning.data={kind: sequences, samples: 256, test_samples: 50}"});
    return curve(settings, batch);
  };
  const auto one = with({"workers=1"}, 16);
  check_close(one, with({"workers=2", "strategy={kind: tensor, ways: 2}"}, 16));
  check_close(one, with({"workers=4", "strategy={kind: tensor, ways: 2}", "batch_per_worker=8"}, 8));
  check_close(one, with({"workers=2", "strategy={kind: filter_parallel, ways: 2, recompute: true}"}, 16));
  check_close(one, with({"workers=2", "strategy={kind: synchronous, mesh: {filter: 2}}"}, 16));
  std::filesystem::remove(file);
}

TEST_CASE("a simulated group that computes activations again learns what one rank learns", "[commands]") {
  const std::vector<std::string> local{"model=tiny-local", "trace=derived"};
  const auto with = [&](std::vector<std::string> settings) {
    settings.insert(settings.end(), local.begin(), local.end());
    return curve(settings);
  };
  check_close(with({"workers=1"}),
              with({"workers=4", "strategy={kind: model_parallel, machines: 4, recompute: true}"}));
}

namespace {

/// Settings of replicas of several machines, which share a network.
std::vector<std::string> replicas(int count, int machines, const std::string& strategy,
                                  std::vector<std::string> more = {}) {
  more.push_back(fmt::format("workers={}", count * machines));
  more.push_back(fmt::format("strategy={{{}, shards: 4, machines_per_replica: {}}}", strategy, machines));
  return more;
}

}  // namespace

TEST_CASE("a simulated replica of several machines learns what a replica of one machine learns",
          "[commands]") {
  for (const char* strategy :
       {"kind: parameter_server", "kind: parameter_server, n_push: 3, n_fetch: 2",
        "kind: parameter_server, mode: synchronous", "kind: elastic_averaging, elastic_force: 0.1",
        "kind: gradient_energy_matching"}) {
    CAPTURE(strategy);
    const auto one = curve(replicas(1, 1, strategy));
    for (const int machines : {2, 4}) {
      CAPTURE(machines);
      const auto shared = curve(replicas(1, machines, strategy));
      check_same_losses(one, shared);
      CHECK(shared.back().first != one.back().first);  // in another time
    }
  }
  const std::vector<std::string> local{"model=tiny-local", "trace=derived"};
  check_close(curve(replicas(1, 1, "kind: parameter_server", local)),
              curve(replicas(1, 4, "kind: parameter_server", local)));
  // Adam counts its steps, of which a network takes one however many machines share it.
  const std::vector<std::string> adam{"learning.optimizer=adam", "learning.learning_rate=0.001"};
  check_same_losses(curve(replicas(1, 1, "kind: parameter_server", adam)),
                    curve(replicas(1, 4, "kind: parameter_server", adam)));
}

TEST_CASE("the clock decides what several simulated replicas of several machines learn", "[commands]") {
  // Replicas that start one after the other meet at the servers in this order, whatever they consist of.
  const std::vector<std::string> even{"learning.optimizer=sgd", "noise={start_spread: 6 ms}"};
  const auto shared = curve(replicas(3, 2, "kind: parameter_server", even));
  check_same_losses(curve(replicas(3, 1, "kind: parameter_server", even)), shared);
  // An uneven machine holds up its replica, so the other replicas' gradients come before.
  auto uneven = even;
  uneven.emplace_back("noise.stragglers=[{worker: 1, factor: 20}]");
  const auto slow = curve(replicas(3, 2, "kind: parameter_server", uneven));
  CHECK(slow.back().first > 2 * shared.back().first);
  CHECK(std::abs(slow.back().second - shared.back().second) > 1e-3);
}

TEST_CASE("L-BFGS of several replicas and servers learns what it learns with one of each", "[commands]") {
  const std::vector<std::string> common{
      "model=tiny-dnn",
      "trace=derived",
      "simulation.steps=10",
      "learning.evaluate_every=1000",
      "learning.learning_rate=0.1",
      "learning.data={kind: sequences, samples: 256, test_samples: 50, noise: 0.1}"};
  const auto last_losses = [&](std::vector<std::string> settings) {
    settings.insert(settings.end(), common.begin(), common.end());
    const auto points = curve(settings);
    return std::pair{points.front().second, points.back().second};
  };
  // Ten batches of 16 portions, which all workers share.
  const auto one =
      last_losses({"workers=1", "learning.mini_batches=160", "strategy={kind: sandblaster, tasks: 16}"});
  CHECK(one.second < 0.05 * one.first);
  const auto two = last_losses({"workers=2", "learning.mini_batches=80",
                                "strategy={kind: sandblaster, tasks: 16, shards: 2, send_every: 2}"});
  const auto copies = last_losses({"workers=2", "learning.mini_batches=80", "noise.straggler_share=0.3",
                                   "noise.straggler_factor=5",
                                   "strategy={kind: sandblaster, tasks: 16, shards: 3, backup_tasks: true}"});
  CHECK(two.second == Approx(one.second).epsilon(1e-4));  // rounding grows in ten steps of L-BFGS
  CHECK(copies.second == Approx(one.second).epsilon(1e-4));
}

TEST_CASE(
    "compressed gradients of simulated workers: fp16 learns as fp32 does, one bit learns something else",
    "[commands]") {
  const std::vector<std::string> settings{"workers=4", "strategy.all_reduce=ring"};
  const auto with = [&](const char* compression) {
    auto all = settings;
    all.push_back(std::string("strategy.compression=") + compression);
    return curve(all);
  };
  const auto whole = curve(settings), half = with("fp16"), bit = with("one_bit");
  REQUIRE(half.size() == whole.size());
  CHECK(half.back().second == Approx(whole.back().second).epsilon(1e-3));
  CHECK(half.back().second != whole.back().second);
  CHECK(std::abs(bit.back().second - whole.back().second) > 1e-3);
  CHECK(std::isfinite(bit.back().second));
  const auto no_feedback = curve({"workers=4",
                                  "strategy={kind: synchronous, all_reduce: ring, compression: one_bit, "
                                  "error_feedback: false}"});
  CHECK(no_feedback[1].second != bit[1].second);
}

TEST_CASE("a simulation that learns takes the time of a simulation without values, to the bit",
          "[commands]") {
  for (const std::vector<std::string>& settings :
       {std::vector<std::string>{"workers=4"},
        {"workers=2", "strategy={kind: pipeline, stages: 2, micro_batches: 4}"},
        {"workers=4", "strategy={kind: bmuf, mini_batches: 2, block_momentum: 0.5}"},
        {"workers=3", "strategy={kind: parameter_server, n_fetch: 2, n_push: 3}"},
        {"workers=4", "strategy={kind: parameter_server, machines_per_replica: 2, shards: 2}"},
        {"workers=4", "strategy={kind: parameter_server, machines_per_replica: 2, shards: 2, overlap: true}"},
        {"workers=4", "strategy={kind: model_parallel, machines: 2}"},
        {"workers=4", "strategy={kind: filter_parallel, ways: 2}"},
        {"workers=3", "strategy={kind: elastic_averaging, period: 2, elastic_force: 0.1}"},
        {"workers=3", "strategy={kind: sandblaster, tasks: 6, history: 3, backup_tasks: true}"},
        {"workers=3", "strategy={kind: gradient_energy_matching}"},
        with_gan({"workers=3", "strategy={kind: elastic_averaging, period: 2, elastic_force: 0.1}"})}) {
    CAPTURE(settings);
    std::vector<double> seconds;
    const std::int64_t batch = settings[0] == "workers=2" ? 4 : 16;
    const Task learns = [&] {
      return fmt::format("{:a}", simulate_learning(experiment_of(settings), batch).seconds);
    };
    const Task counts = [&] {
      const Experiment experiment = experiment_of(settings);
      Simulation simulation = simulation_of(experiment);
      simulation.fold = Folding::never;
      return fmt::format("{:a}", simulate(simulation).seconds);
    };
    std::vector<std::string> texts(2);
    run_tasks({learns, counts}, 2, [&](std::size_t task, const std::string& text) { texts[task] = text; });
    CHECK(texts[0] == texts[1]);
    CHECK(std::stod(texts[0]) > 0);
  }
}
