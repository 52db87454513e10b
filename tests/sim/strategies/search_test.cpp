#include <catch2/catch.hpp>

#include "campaigns/schedule.hpp"
#include "tests/sim/server_run.hpp"

namespace stepcast::search_test {
namespace {

constexpr double kTrainingStep = kMiniBatch + kOwnUpdate;
constexpr int kPoints = 5;  // of a group

double step(const std::string& options, int workers) {
  const ServerRun run{"{kind: search, training_steps: 4, " + options + "}", workers, 0, kPoints, {}};
  return number_from_child([&] { return run.step_seconds(); });
}

const auto nearly = [](double value) { return Approx(value).margin(1e-4); };  // messages of a few bytes

}  // namespace

TEST_CASE("a point of a search takes its proposal and the folds of the fullest slot", "[sim]") {
  CHECK(step("folds: 3, proposal_base: 5 ms", 1) == nearly(0.005 + 3 * 4 * kTrainingStep));
  CHECK(step("folds: 3, folds_at_once: 2, proposal_base: 5 ms", 2) == nearly(0.005 + 2 * 4 * kTrainingStep));
  const double sum = 2 * (kHop + kModel / 2);
  CHECK(step("folds: 3, ranks: 2, all_reduce: ring", 2) == nearly(3 * 4 * (kTrainingStep + sum)));
}

TEST_CASE("groups wait for the driver where proposals take longer than trainings", "[sim]") {
  CHECK(step("folds: 1, proposal_base: 1 s", 3) == nearly(3));
}

TEST_CASE("a search takes the time of its campaign", "[sim]") {
  for (const int at_once : {1, 2}) {
    Campaign campaign;
    campaign.groups = 2;
    campaign.points = campaign.groups * kPoints;
    campaign.folds = 3;
    campaign.folds_at_once = at_once;
    campaign.training = {4 * kTrainingStep};
    campaign.cost.base = {0.005};
    const std::string options = fmt::format("folds: 3, folds_at_once: {}, proposal_base: 5 ms", at_once);
    // The second group begins after the first proposal.
    CHECK(kPoints * step(options, 2 * at_once) + 0.005 ==
          Approx(campaign_times(campaign).makespan.value).margin(1e-3));
  }
}

}  // namespace stepcast::search_test
