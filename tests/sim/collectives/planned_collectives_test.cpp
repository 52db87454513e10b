#include "sim/collectives/planned_collectives.hpp"

#include <catch2/catch.hpp>

#include "tests/sim/child.hpp"
#include "tests/sim/small_cluster.hpp"

namespace stepcast::nccl_seconds_test {

namespace {

/// Four nodes whose platform names NCCL.
Platform with_nccl() {
  Platform platform = switch_platform(4);
  platform.software.nccl = 218;
  platform.software.compute_capability = 70;
  return platform;
}

double sum_of_all(const Platform& platform, double bytes, bool trees) {
  NcclRanks ranks;
  ranks.nodes = 4;
  ranks.devices = {0};
  Software software = platform.software;
  software.trees = trees;
  return nccl_time(software, nccl_channels(platform, ranks), NcclOperation::all_reduce, {bytes}).time.value;
}

}  // namespace

TEST_CASE("a bucket of a synchronous step takes what NCCL takes for it", "[sim][nccl]") {
  for (const Algorithm algorithm : {Algorithm::automatic, Algorithm::ring}) {
    const double seconds = number_from_child([=] {
      Run run(with_nccl(), 4, three_layers({1e12}));
      run.communication.all_reduce.algorithm = algorithm;
      return run.result().steps.front().communication;
    });
    const double bytes = 4 * 6e6;
    CHECK(seconds == Approx(sum_of_all(with_nccl(), bytes, algorithm == Algorithm::automatic)).epsilon(1e-9));
  }
}

TEST_CASE("twice the bandwidth and half the latency shorten a collective of NCCL", "[sim][nccl]") {
  const auto seconds = [](double bandwidth, double latency) {
    return number_from_child([=] {
      Run run(with_nccl(), 4, three_layers({1e12}));
      run.communication.all_reduce.algorithm = Algorithm::ring;
      run.simulation.bandwidths.multiply_all(bandwidth);
      run.simulation.latency_factor = latency;
      return run.result().steps.front().communication;
    });
  };
  const double now = seconds(1, 1), faster = seconds(2, 1), sooner = seconds(1, 0.5);
  CHECK(faster < now);
  CHECK(sooner < now);
  CHECK(seconds(2, 0.5) == Approx(now / 2).epsilon(1e-6));
}

TEST_CASE("an algorithm that NCCL does not have is simulated as without NCCL", "[sim][nccl]") {
  const auto seconds = [](Platform platform) {
    return number_from_child([&] {
      Run run(platform, 4, three_layers({1e12}));
      run.communication.all_reduce.algorithm = Algorithm::halving_doubling;
      return run.result().steps.front().seconds;
    });
  };
  CHECK(seconds(with_nccl()) == seconds(switch_platform(4)));
}

TEST_CASE("folded workers and single ones wait for the same time in NCCL", "[sim][nccl]") {
  const auto seconds = [](Folding fold) {
    return number_from_child([=] {
      Run run(with_nccl(), 4, three_layers({1e6}));
      run.simulation.fold = fold;
      return run.result().steps.front().seconds;
    });
  };
  CHECK(seconds(Folding::automatic) == Approx(seconds(Folding::never)).epsilon(1e-12));
}

std::optional<NcclTime> nccl_time(const Simulation& simulation, const Collective& collective) {
  const Communicator& communicator = communicator_of(*simulation.plan, collective);
  return nccl_time_of(simulation, collective,
                      nccl_ranks(*simulation.platform, *simulation.plan, communicator), {});
}

TEST_CASE("NCCL takes what its slowest group takes, in any order of nodes and groups", "[sim][nccl]") {
  Platform platform = with_nccl();
  platform.devices_per_node = 2;
  platform.node.kind = NodeShape::Kind::nvswitch;
  platform.node.peer = {{150e9}, {1e-6}};
  const auto seconds = [&](const std::vector<int>& endpoints, int size) {
    Run run(platform, endpoints.size(), three_layers({1e12}));
    run.result();
    for (std::size_t i = 0; i < endpoints.size(); ++i) run.plan.endpoints[RankId(i)] = endpoints[i];
    run.plan.communicators.front().size = size;
    const auto time = nccl_time(run.simulation, run.plan.collectives.front());
    return time ? time->time.value : 0;
  };
  const double inside = seconds({0, 1, 2, 3}, 2), between = seconds({0, 2, 1, 3}, 2);
  CHECK(inside < between);
  CHECK(seconds({0, 1, 2, 4}, 2) == seconds({2, 4, 0, 1}, 2));  // one group inside a node, one between nodes
  CHECK(seconds({0, 1, 2, 4}, 2) > inside);
  CHECK(seconds({0, 2, 1, 4}, 2) == seconds({6, 2, 7, 4}, 2));  // both groups share a node, and no other
  CHECK(seconds({0, 2, 1, 4}, 2) == between);
  CHECK(seconds({0, 1, 2, 4, 5, 6}, 3) == 0);  // unequal numbers of ranks on nodes
  CHECK(seconds({0, 2, 4, 1, 3, 3}, 3) == 0);  // two ranks on a device
}

TEST_CASE("groups with hosts and exchanges are left to the simulation of messages", "[sim][nccl]") {
  Run run(with_nccl(), 4, three_layers({1e12}));
  run.result();
  Collective exchange = run.plan.collectives.front();
  exchange.kind = Collective::Kind::exchange;
  CHECK_FALSE(nccl_time(run.simulation, exchange).has_value());
  Simulation other = run.simulation;
  Plan with_host = run.plan;
  with_host.endpoints.front() = run.platform.host_endpoint(0);
  other.plan = &with_host;
  CHECK_FALSE(nccl_time(other, run.plan.collectives.front()).has_value());
  const Platform without_nccl = switch_platform(4);
  other = run.simulation;
  other.platform = &without_nccl;
  CHECK_FALSE(nccl_time(other, run.plan.collectives.front()).has_value());
}

}  // namespace stepcast::nccl_seconds_test
