#include "sim/collectives/nccl_seconds.hpp"

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

TEST_CASE("groups with hosts and exchanges are left to the simulation of messages", "[sim][nccl]") {
  Run run(with_nccl(), 4, three_layers({1e12}));
  run.result();
  Collective exchange = run.plan.collectives.front();
  exchange.kind = Collective::Kind::exchange;
  CHECK_FALSE(nccl_time_of(run.platform, run.plan, exchange, {}).has_value());
  Plan with_host = run.plan;
  with_host.endpoints.front() = run.platform.host_endpoint(0);
  CHECK_FALSE(nccl_time_of(run.platform, with_host, run.plan.collectives.front(), {}).has_value());
  CHECK_FALSE(nccl_time_of(switch_platform(4), run.plan, run.plan.collectives.front(), {}).has_value());
}

}  // namespace stepcast::nccl_seconds_test
