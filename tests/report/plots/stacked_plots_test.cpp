#include <catch2/catch.hpp>

#include "report/plots/results_plots.hpp"

using namespace stepcast;

namespace {

Results two_algorithms() {
  Results results{"s", {}};
  for (const char* algorithm : {"ring", "tree"}) {
    for (const int workers : {8, 16}) {
      Row row;
      row.set("collective", std::string(algorithm));
      row.set("workers", workers);
      results.rows.push_back(row);
    }
  }
  return results;
}

}  // namespace

TEST_CASE("a campaign stacks training and the reasons to be idle that there are", "[report][plot]") {
  auto results = two_algorithms();
  CHECK(campaign_plot(results, {}).bars.empty());
  for (Row& row : results.rows) {
    row.set("makespan_hours", 4.0);
    row.set("makespan_hours_high", 5.0);
    row.set("device_utilization", 0.7);
    row.set("idle_tail_share", 0.3);
    row.set("idle_fold_share", 0.0);
  }
  const auto plot = campaign_plot(results, {});
  CHECK(plot.parts == std::vector<std::string>{"training", "nothing left to try"});
  REQUIRE(plot.bars.size() == 4);
  CHECK(plot.bars[3].label == "tree, 16");
  CHECK(plot.bars[3].hours.value == 4);
  CHECK(plot.bars[3].hours.high == 5);
  CHECK(plot.bars[3].shares == std::vector<double>{0.7, 0.3});
}

TEST_CASE("a training with faults stacks up to its whole time", "[report][plot]") {
  auto results = two_algorithms();
  CHECK(training_plot(results, {}).bars.empty());
  Row& row = results.rows[2];  // points without faults have no bar
  row.set("training_hours_with_faults", 10.0);
  row.set("useful_share", 0.75);
  row.set("lost_to_checkpoints_seconds", 1800.0);
  row.set("lost_to_restart_seconds", 7200.0);
  row.set("lost_to_jitter_seconds", 3600.0);
  const auto plot = training_plot(results, {});
  CHECK(plot.parts ==
        std::vector<std::string>{"undisturbed training", "checkpoints", "repair and restart", "jitter"});
  CHECK(plot.quantity == "training with faults");
  REQUIRE(plot.bars.size() == 1);
  CHECK(plot.bars[0].seconds == std::vector<double>{23400, 1800, 7200, 3600});
}
