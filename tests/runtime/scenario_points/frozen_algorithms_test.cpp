#include "runtime/scenario_points/frozen_algorithms.hpp"

#include <catch2/catch.hpp>

#include "core/error.hpp"
#include "core/os/files.hpp"
#include "report/results/results.hpp"
#include "small_training.hpp"
#include "strategies/plan/plan.hpp"
#include "tests/report/temporary_folder.hpp"

namespace stepcast::frozen_algorithms_test {

namespace {

constexpr int kRanks = 5;
const Optimizer kMomentum{.learning_rate = 0.05, .momentum = 0.9};

Plan plan_with(const std::string& all_reduce) {
  return plan_of("{kind: synchronous, bucket: 100 B, all_reduce: " + all_reduce + "}", kRanks, 0, 3);
}

/// The choices of the plan, all of one algorithm.
AllReduceChoices all_of(const Plan& plan, Algorithm algorithm) {
  AllReduceChoices choices = choices_without_forecast(plan);
  for (auto& [collective, choice] : choices) choice.algorithm = algorithm;
  return choices;
}

void write(const std::filesystem::path& folder, const std::vector<Row>& rows) {
  write_atomically(all_reduce_file(folder), to_csv({"test", rows}));
}

}  // namespace

TEST_CASE("a real run of all_reduce: automatic executes the algorithm that the frozen file names",
          "[validate][collectives]") {
  const TemporaryFolder folder;
  const Plan plan = plan_with("automatic");
  REQUIRE(plan.collectives.size() > 1);
  // A binomial tree is none of the algorithms that `automatic` chooses from.
  write(folder.path(), all_reduce_rows("a, b", plan, all_of(plan, Algorithm::binomial_tree)));
  const AllReduceChoices read = read_all_reduces(all_reduce_file(folder.path()), "a, b", plan);
  CHECK(read.size() == plan.collectives.size());
  // The order of the additions, and so the last bits, depend on the algorithm.
  const auto by_file = trained(plan, kMomentum, {.choices = read});
  CHECK(by_file == trained(plan_with("binomial_tree"), kMomentum));
  CHECK(by_file != trained(plan_with("ring"), kMomentum));
  CHECK(trained(plan, kMomentum) == trained(plan_with("ring"), kMomentum));  // without a forecast
}

TEST_CASE("the parts of a hierarchical all-reduce are frozen, channels and pieces come from the scenario",
          "[validate]") {
  const TemporaryFolder folder;
  Plan plan = plan_with("automatic");
  AllReduceChoices choices = all_of(plan, Algorithm::hierarchical);
  choices.at(CollectiveId{0}).local = LocalPart::leader;
  choices.at(CollectiveId{0}).network = NetworkPart::binomial_tree;
  write(folder.path(), all_reduce_rows("p", plan, choices));
  plan.communicators.front().all_reduce.channels = 3;
  const AllReduceChoice read =
      read_all_reduces(all_reduce_file(folder.path()), "p", plan).at(CollectiveId{0});
  CHECK(read.algorithm == Algorithm::hierarchical);
  CHECK(read.local == LocalPart::leader);
  CHECK(read.network == NetworkPart::binomial_tree);
  CHECK(read.channels == 3);
}

TEST_CASE("a rank refuses a file without its point, and a word that is no algorithm", "[validate][errors]") {
  const TemporaryFolder folder;
  const auto file = all_reduce_file(folder.path());
  const Plan plan = plan_with("automatic");
  const std::string none =
      file.string() +
      ": expected the algorithm of all-reduce 0 of point p, which the forecast chooses because of "
      "all_reduce: automatic, got none; run the validation again";
  CHECK_THROWS_WITH(read_all_reduces(file, "p", plan), none);  // no file
  std::vector<Row> rows = all_reduce_rows("other", plan, choices_without_forecast(plan));
  write(folder.path(), rows);
  CHECK_THROWS_WITH(read_all_reduces(file, "p", plan), none);
  CHECK_THROWS_AS(read_all_reduces(file, "p", plan), InputError);
  rows.front().set("algorithm", "rng");
  write(folder.path(), rows);
  CHECK_THROWS_WITH(
      read_all_reduces(file, "other", plan),
      Catch::StartsWith(file.string() + ": all-reduce 0 of point other: algorithm: expected one of "
                                        "automatic, ring, ") &&
          Catch::EndsWith("got \"rng\""));
  rows.front().set("algorithm", "automatic");
  write(folder.path(), rows);
  CHECK_THROWS_WITH(read_all_reduces(file, "other", plan),
                    Catch::EndsWith("algorithm: expected the algorithm that was chosen, got \"automatic\""));
  CHECK(read_all_reduces(file, "p", plan_with("ring")).empty());  // needs no file
}

}  // namespace stepcast::frozen_algorithms_test
