#include <catch2/catch.hpp>

#include "strategies/plan/run_conditions.hpp"

using namespace stepcast;

namespace {

/// A plan with three workers, a server and two more workers.
Plan two_kinds_of_workers(bool asynchronous) {
  Plan plan;
  plan.asynchronous = asynchronous;
  const auto add = [&plan](int first, int members, bool training) {
    Role role;
    role.first_rank = RankId(first);
    role.members = members;
    role.training = training;
    plan.roles.push_back(role);
  };
  add(0, 3, true);
  add(3, 1, false);
  add(4, 2, true);
  return plan;
}

}  // namespace

TEST_CASE("workers without a common pace start one after the other, servers at once", "[strategies]") {
  const Plan plan = two_kinds_of_workers(true);
  Noise noise;
  noise.start_spread = 10;
  std::vector<double> starts;
  for (int rank = 0; rank < 6; ++rank) starts.push_back(start_seconds(plan, noise, RankId(rank)));
  CHECK(starts == std::vector<double>{0, 2, 4, 0, 6, 8});
}

TEST_CASE("workers that step together start together", "[strategies]") {
  Noise noise;
  noise.start_spread = 10;
  CHECK(start_seconds(two_kinds_of_workers(false), noise, RankId{2}) == 0);
}

TEST_CASE("a step at one's own pace is workers over the sum of their rates", "[strategies]") {
  // Until 10 s, one worker ends four steps of 2 s and the other two of 4 s; a server ends none.
  CHECK(own_pace_step_seconds({{2, 4, 6, 8, 10}, {}, {2, 6, 10, 14}}) == Approx(2 / (1 / 2.0 + 1 / 4.0)));
  CHECK_THROWS_WITH(own_pace_step_seconds({{}}), "no worker ended a step");
}

TEST_CASE("a common step ends when the first worker learns of it", "[strategies]") {
  // The second worker has no work in steps 2 and 3, and learns of their ends with the order to stop.
  CHECK(common_step_seconds({{3, 5, 7}, {3.5, 7.5, 7.5}, {}}) == Approx(2));
  CHECK(common_step_seconds({{4}, {3}}) == 3);
  CHECK_THROWS_WITH(common_step_seconds({{}}), "no worker ended a step");
}
