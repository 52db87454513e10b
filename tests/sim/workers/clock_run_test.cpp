#include <catch2/catch.hpp>
#include <numeric>

#include "sim/collectives/planned_collectives.hpp"
#include "tests/sim/child.hpp"
#include "tests/sim/planned_run.hpp"

namespace stepcast::clock_run_test {

// Runs by clocks against the same runs with a program for each worker, which is the reference.

namespace {

const std::string kBlocks =
    "{name: blocks, source: s, transformer_stack: {layers: 4, width: 64, heads: 4, sequence: 32, vocabulary: "
    "100}}";

/// What a step says, and what its program recorded.
std::vector<double> figures(const std::string& strategy, const Noise& noise, Folding fold, int streams = 1) {
  const auto numbers = numbers_from_child(8, [&] {
    PlannedRun run(16, kBlocks, strategy, 2, 3);
    run.platform.software.nccl = 218;
    run.platform.software.compute_capability = 70;
    for (Communicator& one : run.plan.communicators) one.streams = one.in_flight = streams;
    run.simulation.noise = noise;
    run.simulation.fold = fold;
    const SimulationResult result = run.result();
    const StepSeconds& step = result.steps.back();
    double end = 0;  // result.seconds also counts events that nothing waits for any more
    for (const StepSeconds& one : result.steps) end += one.seconds;
    std::vector<double> values{end, step.seconds, step.compute, step.waiting, step.exposed};
    for (const char* name : {"exchange", "compute"}) {
      const auto found = result.records.find(name);
      const std::vector<double> all = found == result.records.end() ? std::vector<double>{} : found->second;
      values.push_back(std::accumulate(all.begin(), all.end(), 0.0) / result.records.at("step").size());
    }
    values.push_back(result.folding.folds ? 1 : 0);
    return values;
  });
  CHECK(numbers.back() == (fold == Folding::never ? 0 : 1));
  return {numbers.begin(), numbers.end() - 1};
}

Noise lognormal(double sigma) {
  Noise noise;
  noise.jitter = Noise::Jitter::lognormal;
  noise.sigma = sigma;
  return noise;
}

void check_equal(const std::string& strategy, const Noise& noise, int streams = 1) {
  CAPTURE(strategy, streams);
  const auto folded = figures(strategy, noise, Folding::automatic, streams);
  const auto unfolded = figures(strategy, noise, Folding::never, streams);
  CHECK(folded[0] == Approx(unfolded[0]).epsilon(1e-14));
  for (std::size_t i = 1; i < folded.size(); ++i)
    CHECK(folded[i] == Approx(unfolded[i]).epsilon(1e-9).margin(1e-12));
}

const std::vector<std::string> kMeshes{
    "mesh: {tensor: 4}",
    "mesh: {tensor: 2}, shard: parameters",
    "mesh: {tensor: 2, context: 2}, shard: parameters, accumulation: 2",
    "mesh: {tensor: 4}, sequence_parallel: true, shard: parameters, recompute: true",
    "shard: parameters, shard_within: 4",
};

}  // namespace

TEST_CASE("workers on clocks end their steps when programs of their own do", "[sim]") {
  for (const std::string& mesh : kMeshes) {
    for (const std::string more : {"", ", compute_slowdown: 1.3"})
      check_equal("{kind: synchronous, " + mesh + more + "}", lognormal(0.2));
  }
}

TEST_CASE("workers on clocks know streams", "[sim]") {
  for (const int streams : {2, 3})
    check_equal(
        "{kind: synchronous, mesh: {tensor: 2}, shard: parameters, bucket: 20 kB, compute_slowdown: 1.2}",
        lognormal(0.3), streams);
}

TEST_CASE("workers on clocks may have stragglers, and noise in each layer", "[sim]") {
  Noise slow;
  slow.stragglers = {{5, 1.5}};
  check_equal("{kind: synchronous, mesh: {tensor: 4}, compute_slowdown: 1.1}", slow);
  Noise layers = lognormal(0.1);
  layers.jitter = Noise::Jitter::layers;
  check_equal("{kind: synchronous, mesh: {tensor: 2}, shard: parameters}", layers);
}

TEST_CASE("a group does not wait for another's straggler before its gradients are summed", "[sim]") {
  // One tensor group computes 1.5 times as long; all others wait for it once, at the sum.
  Noise slow;
  for (std::uint32_t worker = 0; worker < 4; ++worker) slow.stragglers[worker] = 1.5;
  const std::string strategy = "{kind: synchronous, mesh: {tensor: 4}, overlap: false}";
  const auto even = figures(strategy, lognormal(1e-12), Folding::automatic);
  const auto uneven = figures(strategy, slow, Folding::automatic);
  CHECK(uneven[1] - even[1] == Approx(0.5 * even[2]).epsilon(1e-6));
}

TEST_CASE("programs cost more than clocks, these more than a single one, and twice the steps twice as much",
          "[sim]") {
  const auto seconds = [](int steps, double sigma, Folding fold) {
    PlannedRun run(16, kBlocks, "{kind: synchronous, mesh: {tensor: 4}}", 2, steps);
    run.platform.software.nccl = 218;
    run.platform.software.compute_capability = 70;
    if (sigma > 0) run.simulation.noise = lognormal(sigma);
    run.simulation.fold = fold;
    const Topology topology(run.platform);
    const CollectiveSchedules schedules(run.simulation, topology);
    return program_seconds(PlannedCollectives(schedules, ComputeBudget::small).traffic());
  };
  const double programs = seconds(3, 0.1, Folding::never);
  CHECK(programs > seconds(3, 0.1, Folding::automatic));
  CHECK(seconds(3, 0.1, Folding::automatic) > seconds(3, 0, Folding::automatic));
  CHECK(seconds(6, 0.1, Folding::never) == Approx(2 * programs));
}

}  // namespace stepcast::clock_run_test
