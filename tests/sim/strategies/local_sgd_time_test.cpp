#include <catch2/catch.hpp>
#include <cmath>

#include "sim/simulation.hpp"
#include "strategies/local_sgd/block_plan.hpp"
#include "strategies/local_sgd/block_training.hpp"
#include "strategies/plan/run_conditions.hpp"
#include "tests/sim/child.hpp"
#include "tests/sim/small_cluster.hpp"

namespace stepcast::local_sgd_time_test {

// All blocks have three mini-batches of three_layers (24 MB of parameters), on one switch of 1 GB/s and 1 us.

namespace {

constexpr double kLatency = 1e-6, kBandwidth = 1e9, kModel = 24e6;
constexpr double kMiniBatch = kCompute + kUpdate;
constexpr double kArray = 0.0005, kFilter = 8 * kArray;  // parameters, D, W and W_g are read and written
const auto exactly = [](double value) { return Approx(value).epsilon(1e-9).margin(0); };

struct Case {
  int workers = 8;
  Aggregation aggregation = Aggregation::tree;
  int inside = 1;
  bool fold = true;
  Fidelity fidelity = Fidelity::automatic;
  std::function<void(BlockSetup&)> change = [](BlockSetup&) {};
  Noise noise = {};
};

/// The strategy's own columns, in the order block, optimize, aggregate, validate, overhead, followed by the
/// four columns of a sweep if there is one.
std::vector<double> figures(const Case& what) {
  const std::function<std::vector<double>()> body = [&what] {
    Run run(switch_platform(what.workers), what.workers, three_layers({1e9}));
    BlockSetup setup;
    setup.training.blocks = 3;
    setup.training.mini_batches = 3;
    setup.aggregation = what.aggregation;
    setup.communication.all_reduce.algorithm = Algorithm::ring;
    setup.workers_per_replica = what.inside;
    setup.parameters = {kModel};
    setup.array_seconds = {kArray};
    setup.batch = 10;
    what.change(setup);
    run.plan = block_plan(run.platform, run.endpoints, run.workload, setup);
    run.simulation.plan = &run.plan;
    run.simulation.fold = what.fold ? Folding::always : Folding::never;
    run.simulation.fidelity = what.fidelity;
    run.simulation.noise = what.noise;
    const SimulationResult result = simulate(run.simulation);
    std::vector<double> values;
    for (const auto& [column, value] : run.plan.figures(result.records, result.steps.back().seconds))
      values.push_back(value);
    values.resize(9);
    return values;
  };
  return numbers_from_child(9, body);
}

double tree_seconds(int replicas, double bytes) {
  return 2 * std::ceil(std::log2(replicas)) * (kLatency + bytes / kBandwidth);
}

}  // namespace

TEST_CASE("a block by tree takes its mini-batches and 2 ceil(log2 N) (a + S/B)", "[sim][block]") {
  const int workers = GENERATE(2, 5, 8);
  const Fidelity fidelity = GENERATE(Fidelity::coupled, Fidelity::message);
  CAPTURE(workers, ordinal(fidelity));
  const auto found = figures({.workers = workers, .fidelity = fidelity});
  CHECK(found[1] == exactly(3 * kMiniBatch));
  const double aggregate = tree_seconds(workers, kModel) + kFilter;
  CHECK(found[2] == exactly(aggregate));
  CHECK(found[0] == exactly(3 * kMiniBatch + aggregate));
  CHECK(found[4] == exactly(aggregate / (3 * kMiniBatch)));
}

TEST_CASE("a flat master takes 2 (a + (N-1) S/B)", "[sim][block]") {
  const Fidelity fidelity = GENERATE(Fidelity::coupled, Fidelity::message);
  const auto found = figures({.workers = 8, .aggregation = Aggregation::flat, .fidelity = fidelity});
  CHECK(found[2] == exactly(2 * (kLatency + 7 * kModel / kBandwidth) + kFilter));
}

TEST_CASE("aggregation by a ring takes 2 (N-1) (a + S/(N B))", "[sim][block]") {
  const auto found = figures({.workers = 8, .aggregation = Aggregation::all_reduce});
  CHECK(found[2] == exactly(2 * 7 * (kLatency + kModel / 8 / kBandwidth) + kFilter));
}

TEST_CASE("one worker aggregates nothing and is late for nobody", "[sim][block]") {
  const auto change = [](BlockSetup& setup) {
    setup.training.filter = {0.9, 1, BlockFilter::Form::nesterov};
    setup.training.imbalance = 0.5;
    setup.training.aggregation_overhead = {1};
  };
  const auto found = figures({.workers = 1, .change = change});
  CHECK(found[0] == exactly(3 * kMiniBatch));
  CHECK(found[2] == 0);
}

TEST_CASE("filter, fixed part, imbalance and validation are added to a block", "[sim][block]") {
  const auto change = [](BlockSetup& setup) {
    setup.training.filter = {0.9, 1, BlockFilter::Form::nesterov};
    setup.training.imbalance = 0.5;
    setup.training.aggregation_overhead = {0.25};
    setup.validation = {40, 1600, 2};  // 60 x 40 / 1600 samples of a block, at half of the forward rate
    setup.epoch_samples = 2400;        // ten blocks
  };
  const auto found = figures({.workers = 8, .change = change});
  const double aggregate = tree_seconds(8, kModel) + kFilter + 0.25;
  const double validate = 3 * 40 / 1600.0 * 2 * 0.060;
  CHECK(found[1] == exactly(1.5 * 3 * kMiniBatch));
  CHECK(found[2] == exactly(aggregate));
  CHECK(found[3] == exactly(validate));
  CHECK(found[5] == exactly(10 * 1.5 * 3 * kMiniBatch / 60));
  CHECK(found[6] == exactly(10 * aggregate / 60));
  CHECK(found[7] == exactly(10 * validate / 60));
  CHECK(found[8] == exactly(found[5] + found[6] + found[7]));
}

TEST_CASE("replicas of several workers sum gradients inside and average shares between", "[sim][block]") {
  const auto found = figures({.workers = 8, .inside = 4});
  const double ring = 6 * (kLatency + kModel / 4 / kBandwidth);
  CHECK(found[1] == exactly(3 * (kMiniBatch + ring)));
  CHECK(found[2] ==
        exactly(tree_seconds(2, kModel / 4) + kFilter / 4 + 3 * (kLatency + kModel / 4 / kBandwidth)));
}

TEST_CASE("one program for all workers gives the same jittered blocks as one each", "[sim][block]") {
  const int inside = GENERATE(1, 2);
  Noise noise;
  noise.jitter = Noise::Jitter::lognormal;
  noise.sigma = 0.2;
  const auto folded =
      figures({.workers = 8, .inside = inside, .fold = true, .fidelity = Fidelity::message, .noise = noise});
  const auto apart =
      figures({.workers = 8, .inside = inside, .fold = false, .fidelity = Fidelity::message, .noise = noise});
  for (std::size_t i = 0; i < folded.size(); ++i) CHECK(folded[i] == Approx(apart[i]).epsilon(1e-9));
  CHECK(folded[1] > 1.05 * 3 * kMiniBatch);
}

TEST_CASE("a master that balances the load gives slow workers fewer mini-batches", "[sim][block]") {
  Noise noise;
  noise.straggler_share = 0.4;
  noise.straggler_factor = 2;
  const auto change = [](bool balanced) {
    return [balanced](BlockSetup& setup) {
      setup.training.mini_batches = 30;
      setup.training.balanced = balanced;
    };
  };
  std::vector<double> factors;
  for (std::uint32_t worker = 0; worker < 8; ++worker)
    factors.push_back(draw(noise, 1, worker, 0, {}).factor);
  REQUIRE(std::count(factors.begin(), factors.end(), 2.0) > 0);
  REQUIRE(std::count(factors.begin(), factors.end(), 1.0) > 0);
  const std::vector<int> shares = balanced_shares(factors, 240);
  double last = 0;
  for (std::size_t i = 0; i < factors.size(); ++i) last = std::max(last, factors[i] * shares[i] * kMiniBatch);

  const auto plain = figures({.change = change(false), .noise = noise});
  const auto balanced = figures({.change = change(true), .noise = noise});
  CHECK(plain[1] == exactly(2 * 30 * kMiniBatch));
  CHECK(balanced[1] == exactly(last));
  CHECK(balanced[2] ==
        Approx(tree_seconds(8, kModel) + factors[0] * kFilter).epsilon(1e-3));  // and two messages of 8 bytes
}

}  // namespace stepcast::local_sgd_time_test
