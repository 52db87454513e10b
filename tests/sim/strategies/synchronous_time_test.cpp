#include <catch2/catch.hpp>
#include <cmath>

#include "tests/sim/small_cluster.hpp"

namespace stepcast::synchronous_time_test {

// Each TEST_CASE runs one simulation, because SimGrid keeps its clock from one engine to the next.

namespace {

constexpr double kLatency = 1e-6;   // device to device
constexpr double kBandwidth = 1e9;  // of a cable
constexpr double kGradient = 24e6;  // all of three_layers

/// A step of a few workers with all gradients in one all-reduce after the backward pass.
double step_seconds(Algorithm algorithm, int workers, Fidelity fidelity,
                    LinkSharing sharing = LinkSharing::max_min) {
  Run run(switch_platform(workers), workers, three_layers({1e9}));
  run.options.overlap = false;
  run.communication.all_reduce.algorithm = algorithm;
  run.simulation.fidelity = fidelity;
  run.simulation.link_sharing = sharing;
  return run.result().steps.at(0).seconds;
}

double ring_seconds(int p) {
  return 2 * (p - 1) * (kLatency + kGradient / p / kBandwidth);
}
double halving_seconds(int p) {
  return 2 * std::log2(p) * kLatency + 2.0 * (p - 1) / p * kGradient / kBandwidth;
}

constexpr double kFixed = kCompute + kUpdate;
const auto exactly = [](double value) { return Approx(value).epsilon(1e-9).margin(0); };

}  // namespace

TEST_CASE("one worker's step is the trace's step", "[sim]") {
  CHECK(step_seconds(Algorithm::ring, 1, Fidelity::automatic) == exactly(kFixed));
}

TEST_CASE("ring, coupled: the closed form on a switch", "[sim]") {
  CHECK(step_seconds(Algorithm::ring, 6, Fidelity::coupled) == exactly(kFixed + ring_seconds(6)));
}
TEST_CASE("ring, fluid: the closed form on a switch", "[sim]") {
  CHECK(step_seconds(Algorithm::ring, 6, Fidelity::fluid) == exactly(kFixed + ring_seconds(6)));
}
TEST_CASE("ring, every message: the closed form on a switch", "[sim]") {
  CHECK(step_seconds(Algorithm::ring, 6, Fidelity::message) == exactly(kFixed + ring_seconds(6)));
}
TEST_CASE("ring, shared by SimGrid: the closed form on a switch", "[sim]") {
  const Fidelity fidelity = GENERATE(Fidelity::message, Fidelity::fluid, Fidelity::coupled);
  CHECK(step_seconds(Algorithm::ring, 6, fidelity, LinkSharing::simgrid) ==
        exactly(kFixed + ring_seconds(6)));
}
TEST_CASE("halving-doubling, coupled: the closed form on a switch", "[sim]") {
  CHECK(step_seconds(Algorithm::halving_doubling, 16, Fidelity::coupled) ==
        exactly(kFixed + halving_seconds(16)));
}
TEST_CASE("halving-doubling, every message: the closed form on a switch", "[sim]") {
  CHECK(step_seconds(Algorithm::halving_doubling, 16, Fidelity::message) ==
        exactly(kFixed + halving_seconds(16)));
}
TEST_CASE("recursive doubling, every message: the closed form on a switch", "[sim]") {
  CHECK(step_seconds(Algorithm::recursive_doubling, 8, Fidelity::message) ==
        exactly(kFixed + 3 * (kLatency + kGradient / kBandwidth)));
}
TEST_CASE("binomial tree, every message: the closed form on a switch", "[sim]") {
  CHECK(step_seconds(Algorithm::binomial_tree, 8, Fidelity::message) ==
        exactly(kFixed + 6 * (kLatency + kGradient / kBandwidth)));
}
TEST_CASE("binomial tree, coupled: the closed form on a switch", "[sim]") {
  CHECK(step_seconds(Algorithm::binomial_tree, 8, Fidelity::coupled) ==
        exactly(kFixed + 6 * (kLatency + kGradient / kBandwidth)));
}

namespace {

constexpr double kCopyRate = 2e9;

Seconds step_with_copies(Synchronous::BucketCopies copies, int workers, Bytes bucket, bool overlap) {
  Run run(switch_platform(workers), workers, three_layers(bucket));
  run.options.overlap = overlap;
  run.options.bucket_copies = copies;
  run.options.copy_rate = {kCopyRate};
  run.communication.all_reduce.algorithm = Algorithm::ring;
  return {run.result().steps.at(0).seconds};
}

}  // namespace

TEST_CASE("bucket copies on the device take time before and after the sum", "[sim]") {
  CHECK(step_with_copies(Synchronous::BucketCopies::device, 4, {1e9}, false).value ==
        exactly(kFixed + ring_seconds(4) + 2 * kGradient / kCopyRate));
}
TEST_CASE("bucket copies to the host and back take time before and after the sum", "[sim]") {
  CHECK(step_with_copies(Synchronous::BucketCopies::host, 4, {1e9}, false).value ==
        exactly(kFixed + ring_seconds(4) + 2 * kGradient / kCopyRate));
}
TEST_CASE("copies to the host overlap the backward pass, those on the device do not", "[sim]") {
  // The last bucket has 4 MB, and the sums of the others end before it is ready.
  const double last = 6 * (kLatency + 4e6 / 4 / kBandwidth);
  CHECK(step_with_copies(Synchronous::BucketCopies::host, 4, {1}, true).value ==
        exactly(kFixed + last + (4e6 + kGradient) / kCopyRate));
}
TEST_CASE("copies on the device delay the rest of the backward pass", "[sim]") {
  const double last = 6 * (kLatency + 4e6 / 4 / kBandwidth);
  CHECK(step_with_copies(Synchronous::BucketCopies::device, 4, {1}, true).value ==
        exactly(kFixed + last + 2 * kGradient / kCopyRate));
}
TEST_CASE("one worker copies no buckets", "[sim]") {
  CHECK(step_with_copies(Synchronous::BucketCopies::device, 1, {1e9}, false).value == exactly(kFixed));
}

TEST_CASE("overlap hides all-reduces of early buckets and exposes the last", "[sim]") {
  // Buckets of 12, 8 and 4 MB are ready 60, 100 and 120 ms into the backward pass; each takes less than the
  // next layer.
  Run run(switch_platform(4), 4, three_layers({1}));
  run.communication.all_reduce.algorithm = Algorithm::ring;
  const auto step = run.result().steps.at(0);
  const double last = 6 * (kLatency + 4e6 / 4 / kBandwidth);
  CHECK(step.seconds == exactly(kFixed + last));
  CHECK(step.exposed == exactly(last));
  CHECK(step.compute == exactly(kFixed));
  CHECK(step.communication == exactly(3 * 6 * kLatency + 1.5 * kGradient / kBandwidth));
}

TEST_CASE("compute slows down only while it communicates", "[sim]") {
  // 12 MB travel beside 40 ms of backward, 8 MB beside 20 ms; 18.006 and 12.006 ms of collectives take 2/3 of
  // their length from compute when the slow-down is 3.
  Run run(switch_platform(4), 4, three_layers({1}));
  run.communication.all_reduce.algorithm = Algorithm::ring;
  run.compute_slowdown = 3;
  const double first = 6 * (kLatency + 3e6 / kBandwidth), second = 6 * (kLatency + 2e6 / kBandwidth);
  const double last = 6 * (kLatency + 1e6 / kBandwidth);
  CHECK(run.result().steps.at(0).seconds == exactly(kFixed + (first + second) * 2 / 3 + last));
}

TEST_CASE("with one stream collectives queue and the step ends with the last", "[sim]") {
  Run run(switch_platform(4), 4, three_layers({1}));
  for (LayerSeconds& layer : run.workload.median) layer.backward = 0;
  run.communication.all_reduce.algorithm = Algorithm::ring;
  CHECK(run.result().steps.at(0).seconds ==
        exactly(0.060 + kUpdate + 3 * 6 * kLatency + 1.5 * kGradient / kBandwidth));
}

TEST_CASE("gradient accumulation computes more and communicates once", "[sim]") {
  Run run(switch_platform(6), 6, three_layers({1e9}));
  run.options.overlap = false;
  run.options.micro_batches = 4;
  run.communication.all_reduce.algorithm = Algorithm::ring;
  const double sums = (2 + 3 * 3) * kUpdate / 5;  // the first gradients are copied, those of three are added
  CHECK(run.result().steps.at(0).seconds == exactly(4 * kCompute + sums + kUpdate + ring_seconds(6)));
}

TEST_CASE("recomputation adds the forward pass to the backward pass", "[sim]") {
  Run run(switch_platform(1), 1, three_layers({1}));
  run.options.recompute = true;
  CHECK(run.result().steps.at(0).seconds == exactly(kFixed + 0.060));
}

TEST_CASE("a host that waits before each collective delays the backward pass", "[sim]") {
  Run run(switch_platform(4), 4, three_layers({1}));
  run.communication.all_reduce.algorithm = Algorithm::ring;
  run.options.host_synchronization = {0.001};
  const double last = 6 * (kLatency + 4e6 / 4 / kBandwidth);
  CHECK(run.result().steps.at(0).seconds == exactly(kFixed + 0.003 + last));
}

TEST_CASE("synchronized batch norm waits for an all-reduce forward and backward", "[sim]") {
  Run run(switch_platform(4), 4, three_layers({1e9}));
  run.workload.statistics[1] = {4000};
  run.options.overlap = false;
  run.options.synchronized_batch_norm = true;
  run.communication.all_reduce.algorithm = Algorithm::ring;
  const double statistics = 6 * (kLatency + 1000 / kBandwidth);
  CHECK(run.result().steps.at(0).seconds == exactly(kFixed + ring_seconds(4) + 2 * statistics));
}

TEST_CASE("the straggler sets the pace of every step", "[sim]") {
  Run run(switch_platform(8), 8, three_layers({1e9}));
  run.options.overlap = false;
  run.options.steps = 2;
  run.communication.all_reduce.algorithm = Algorithm::ring;
  run.simulation.noise.straggler_share = 1;
  run.simulation.noise.straggler_factor = 1.5;
  for (const StepSeconds& step : run.result().steps)
    CHECK(step.seconds == exactly(1.5 * kFixed + ring_seconds(8)));
}

TEST_CASE("one named straggler sets the pace of every step", "[sim]") {
  const double alone = 1.25 * kFixed + ring_seconds(8);
  Run run(switch_platform(8), 8, three_layers({1e9}));
  run.options.overlap = false;
  run.options.steps = 2;
  run.communication.all_reduce.algorithm = Algorithm::ring;
  run.simulation.noise.stragglers = {{5, 1.25}};
  for (const StepSeconds& step : run.result().steps) CHECK(step.seconds == exactly(alone));
  run.simulation.noise.stragglers = {{8, 1.25}};  // there is no such worker
  for (const StepSeconds& step : run.result().steps) CHECK(step.seconds == exactly(kFixed + ring_seconds(8)));
}

TEST_CASE("the parts of a step add up to it", "[sim]") {
  Run run(switch_platform(8), 8, three_layers({1}));
  run.options.steps = 5;
  run.simulation.noise.jitter = Noise::Jitter::lognormal;
  run.simulation.noise.sigma = 0.1;
  const auto steps = run.result().steps;
  REQUIRE(steps.size() == 5);
  for (const StepSeconds& step : steps) {
    CHECK(step.compute + step.waiting + step.loading + step.exposed == Approx(step.seconds).epsilon(1e-9));
    CHECK(step.waiting > 0);
  }
}

TEST_CASE("MPI's own all-reduce is forecast as the algorithm that Open MPI decides on", "[sim]") {
  CHECK(step_seconds(Algorithm::mpi, 4, Fidelity::message) == exactly(kFixed + halving_seconds(4)));
}

TEST_CASE("a wait before a sum passes beside the backward pass", "[sim]") {
  Run run(switch_platform(6), 6, three_layers({1e9}));
  run.communication.all_reduce.algorithm = Algorithm::ring;
  run.workload.buckets.front().wait = {0.010};
  CHECK(run.result().steps.at(0).seconds == exactly(kFixed + 0.010 + ring_seconds(6)));
}

TEST_CASE("a wait that ends before the next sum could start costs nothing", "[sim]") {
  const auto step = [](double wait) {
    Run run(switch_platform(2), 2, three_layers({0}));
    run.communication.all_reduce.algorithm = Algorithm::ring;
    run.workload.buckets[0].wait = {wait};  // 12 MB after 60 ms of 120
    return run.result().steps.at(0).seconds;
  };
  CHECK(step(0) == exactly(step(0.001)));
}

TEST_CASE("host work that a server's workers share bounds the step, beside the devices", "[sim]") {
  const auto step = [](double work, int workers) {
    Run run(switch_platform(workers), workers, three_layers({1e9}));
    run.communication.all_reduce.algorithm = Algorithm::ring;
    run.options.host_work = {work};
    return run.result().steps.at(0).seconds;
  };
  CHECK(step(0.050, 1) == exactly(kFixed));
  CHECK(step(0.500, 1) == exactly(0.500 + kUpdate));
  CHECK(step(0.500, 6) == exactly(0.500 + ring_seconds(6) + kUpdate));  // one worker a server
}

TEST_CASE("the one process of a server serves its devices in turn while all of them wait", "[sim]") {
  const auto added = [](int workers, const std::string& node) {
    const std::string text = "name: test\nsource: test\ndevice: none\nnodes: 2\nmax_nodes: 2\nnode:\n  " +
                             node +
                             "\n  device_link: {bandwidth: 12 GB/s, latency: 1 us}\n  memory: {bandwidth: 60 "
                             "GB/s, latency: 0 us}\n"
                             "network: {kind: switch, bandwidth: 1 GB/s, latency: 1 us}\n"
                             "messages:\n  between_nodes: [{overhead: 0 s, bandwidth_factor: 1}]\n"
                             "  inside_node: [{overhead: 0 s, bandwidth_factor: 1}]\n";
    const YamlNode root = parse_yaml(text, "test.yaml");
    const auto step = [&](double turn) {
      Run run(read_platform(YamlValue(root, ""), {}), workers, three_layers({1e9}));
      run.options.host_turn = {turn};
      return run.result().steps.at(0).seconds;
    };
    return step(0.040) - step(0);
  };
  CHECK(added(1, "kind: single") == Approx(0.040));
  CHECK(added(2, "kind: single") == Approx(0.040));  // a process each
  CHECK(added(2, "kind: pcie\n  devices: 4") == Approx(2 * 0.040));
  CHECK(added(6, "kind: pcie\n  devices: 4") == Approx(4 * 0.040));  // of the fullest server
}

}  // namespace stepcast::synchronous_time_test
