#include <catch2/catch.hpp>

#include "validate/compare/point_comparison.hpp"

using namespace stepcast;

namespace {

/// A training that reached the target after so many seconds, with 100 samples a second.
LearnedRun run(const char* point, std::int64_t seed, std::optional<double> seconds) {
  LearnedRun one{.point = point, .seed = seed, .mini_batches = 10, .seconds = 9, .samples = 900, .loss = 0.5};
  one.seconds_to_target = seconds;
  if (seconds) one.samples_to_target = 100 * *seconds;
  return one;
}

}  // namespace

TEST_CASE("forecast and real trainings of a seed are joined", "[validate][learning]") {
  const std::vector<LearnedRun> predicted{run("workers=1", 1, 2), run("workers=1", 2, std::nullopt)};
  const std::vector<LearnedRun> measured{run("workers=1", 1, 2.5), run("workers=1", 2, 4),
                                         run("workers=1", 3, 4)};
  const Results times = times_to_loss("s", 0.7, predicted, measured);
  REQUIRE(times.rows.size() == 2);  // the third was not forecast
  CHECK(times.rows[0].number("target_loss") == 0.7);
  CHECK(times.rows[0].number("predicted_seconds") == 2);
  CHECK(times.rows[0].number("measured_seconds") == 2.5);
  CHECK(times.rows[0].number("predicted_samples") == 200);
  CHECK(times.rows[1].number("seed") == 2);
  CHECK(!times.rows[1].number("predicted_seconds"));
  CHECK(times.rows[1].number("measured_seconds") == 4);
  CHECK(times.rows[1].number("predicted_loss") == 0.5);
}

TEST_CASE("the table compares medians over the seeds, where both reach the loss", "[validate][learning]") {
  const auto points = [](std::optional<double> one, std::optional<double> two) {
    return learned_points({run("workers=1", 1, one), run("workers=1", 2, one), run("workers=2", 1, two),
                           run("workers=2", 2, two)});
  };
  const Table table = times_to_loss_table(0.7, points(2, 1), points(2.5, std::nullopt));
  REQUIRE(table.rows.size() == 2);
  CHECK(table.columns[1].header == "time to loss 0.7");
  CHECK(table.rows[0] == std::vector<std::string>{"workers=1", "2.00 s", "2.50 s", "-20.0", "200", "250"});
  CHECK(table.rows[1] ==
        std::vector<std::string>{"workers=2", "1.00 s", "not reached", "", "100", "not reached"});
}
