#include <catch2/catch.hpp>

#include "sim/simulation.hpp"
#include "strategies/local_sgd/block_plan.hpp"
#include "tests/sim/child.hpp"
#include "tests/sim/small_cluster.hpp"

namespace stepcast::local_sgd_options_time_test {

// Tests what options add to the time of a block of three mini-batches of three_layers (24 MB of parameters)
// on one switch of 1 GB/s and 1 us: validation after some blocks, and compressed updates.

namespace {

constexpr double kModel = 24e6;
constexpr double kMiniBatch = kCompute + kUpdate;
constexpr double kArray = 0.0005, kFilter = 8 * kArray;  // parameters, D, W and W_g are read and written
const auto exactly = [](double value) { return Approx(value).epsilon(1e-9).margin(0); };

BlockSetup small_blocks(int blocks) {
  BlockSetup setup;
  setup.training.blocks = blocks;
  setup.training.mini_batches = 3;
  setup.aggregation = Aggregation::all_reduce;
  setup.communication.all_reduce.algorithm = Algorithm::ring;
  setup.parameters = {kModel};
  setup.array_seconds = {kArray};
  setup.batch = 10;
  return setup;
}

/// Seconds of each block on four workers, then the strategy's own columns.
std::vector<double> seconds_and_figures(const BlockSetup& setup, std::size_t count) {
  return numbers_from_child(count, [&setup] {
    Run run(switch_platform(4), 4, three_layers({1e9}));
    run.plan = block_plan(run.platform, run.endpoints, run.workload, setup);
    run.simulation.plan = &run.plan;
    const SimulationResult result = simulate(run.simulation);
    std::vector<double> values;
    for (const StepSeconds& block : result.steps) values.push_back(block.seconds);
    for (const auto& [column, value] : run.plan.figures(result.records, result.steps.back().seconds))
      values.push_back(value);
    return values;
  });
}

double ring(double bytes) {
  return 6 * (1e-6 + bytes / 4 / 1e9);
}

/// The time of a block of four workers, without or with compression.
double aggregation(Compression kind, int inside = 1) {
  BlockSetup setup = small_blocks(1);
  setup.workers_per_replica = inside;
  setup.compression.kind = kind;
  setup.compression.rows = 1000;
  setup.compression.density = 0.01;
  setup.compression.cost = {1e-9, 5e-10};
  return seconds_and_figures(setup, 6)[3];
}

}  // namespace

TEST_CASE("validations at their moments come whole after the blocks that reach them", "[sim][block]") {
  BlockSetup setup = small_blocks(5);      // of 120 samples each
  setup.validation = {40, 300, 2, false};  // due at 300 and 600 samples: after blocks 3 and 5
  setup.epoch_samples = 1200;              // ten blocks, four validations
  const auto found = seconds_and_figures(setup, 14);
  const double aggregate = ring(kModel) + kFilter, block = 3 * kMiniBatch + aggregate;
  const double validation = 40.0 / (4 * 10) * 2 * 0.060;
  for (const int i : {0, 1, 3}) CHECK(found[i] == exactly(block));
  for (const int i : {2, 4}) CHECK(found[i] == exactly(block + validation));
  CHECK(found[8] == exactly(120.0 / 300 * validation));      // block_validate_seconds: a block's share
  CHECK(found[9] == exactly(aggregate / (3 * kMiniBatch)));  // overhead: without validation
  CHECK(found[12] == exactly(4 * validation / 60));          // sweep_validate_minutes
  CHECK(found[13] == exactly((10 * block + 4 * validation) / 60));
}

TEST_CASE("more than one validation can fall due after a block", "[sim][block]") {
  BlockRun run;
  run.block_samples = 100;
  run.validation_every = 40;
  CHECK(validations_after(run, 0) == 2);
  CHECK(validations_after(run, 1) == 3);
  run.validation_every = 100;
  for (int block = 0; block < 1000; ++block) CHECK(validations_after(run, block) == 1);
}

TEST_CASE("compressed updates of blocks are quantized, summed smaller and restored", "[sim][block]") {
  CHECK(aggregation(Compression::none) == exactly(ring(kModel) + kFilter));
  CHECK(aggregation(Compression::fp16) == exactly(ring(kModel / 2) + kModel * (1.25e-9 + 1e-9) + kFilter));
  const double bits = kModel / 32 + 6000 * 8 + 6000 * 3;  // as in compression_time_test.cpp
  CHECK(aggregation(Compression::one_bit) == exactly(ring(bits) + kModel * (1.25e-9 + 1e-9) + kFilter));
  const double gather = 3 * (1e-6 + 8 * 0.01 * kModel / 4 / 1e9);
  CHECK(aggregation(Compression::top_k) ==
        exactly(gather + kModel * (1e-9 + 5e-10 * (1 + 4 * 0.01)) + kFilter));
}

TEST_CASE("replicas of two workers compress a half of the model each, and gather it whole", "[sim][block]") {
  const double half = kModel / 2;
  const double pair = 2 * (1e-6 + half / 2 / 2 / 1e9);  // a ring of two, of halves in 2 bytes
  const double gathered = 1e-6 + half / 1e9;
  CHECK(aggregation(Compression::fp16, 2) == exactly(pair + half * (1.5e-9 + 1e-9) + gathered + kFilter / 2));
}

}  // namespace stepcast::local_sgd_options_time_test
