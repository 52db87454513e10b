#include "commands/learn/learned_campaign.hpp"

#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <filesystem>
#include <fstream>

#include "report/results/results.hpp"

using namespace stepcast;

// Campaigns whose points are trained.

namespace {

constexpr const char* kScenario = R"(
name: searches
model: tiny-dnn
trace: derived
platform: ethernet-cpu
workers: 2
batch_per_worker: 8
strategy: {kind: synchronous}
noise: {jitter: lognormal, sigma: 0.1}
simulation: {seed: 1}
learning:
  mini_batches: 4
  seeds: 2
  learning_rate: 0.02
  data: {kind: sequences, samples: 96, test_samples: 32}
campaign:
  points: 4
  groups: 2
  folds: 2
  folds_at_once: 2
  over: "learning.learning_rate=0.001..1:log, batch_per_worker=4|8"
sweep:
  campaign.optimizer: [{by: random}, {by: bayesian}]
)";

/// A folder of its own for the scenario, which is removed at the end.
struct CampaignFolder {
  std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("learned-campaign-" + std::to_string(::getpid()));
  CampaignFolder() {
    std::filesystem::create_directories(path);
    std::ofstream(path / "searches.yaml") << kScenario;
  }
  ~CampaignFolder() { std::filesystem::remove_all(path); }

  std::vector<LearnedCampaign> learned(const std::vector<std::string>& settings = {}, int processes = 2,
                                       const TrainingStore& store = {}) const {
    std::vector<Assignment> values;
    for (const std::string& text : settings) values.push_back(parse_assignment(text));
    const Scenario scenario = read_scenario(path / "searches.yaml", values);
    return learned_campaigns({scenario, path, false, processes, store}, learning_runs(scenario));
  }
};

std::string points_of(const std::vector<LearnedCampaign>& campaigns) {
  return to_csv(campaign_points("s", campaigns));
}

}  // namespace

TEST_CASE("a campaign trains its points, with the same bits for any number of processes", "[commands]") {
  const CampaignFolder folder;
  const auto campaigns = folder.learned({}, 1);
  REQUIRE(campaigns.size() == 2 * 2);  // two methods with two seeds each
  CHECK(points_of(campaigns) == points_of(folder.learned({}, 3)));
  for (const LearnedCampaign& one : campaigns) {
    REQUIRE(one.trials.size() == 4);
    for (const CampaignTrial& trial : one.trials) {
      CHECK(trial.end > trial.proposal.start);
      CHECK(trial.figure > 0);
      CHECK(trial.figure < 10);
    }
  }
  CHECK(campaigns[0].trials[0].trial.values != campaigns[1].trials[0].trial.values);  // another seed
  const Results results = campaign_results("s", campaigns);
  double least = HUGE_VAL;
  for (const Row& row : results.rows) {
    least = std::min(least, *row.number("regret"));
    double shares = 0;
    for (const char* column : {"device_utilization", "idle_optimizer_share", "idle_fold_share",
                               "idle_generation_share", "idle_tail_share", "idle_driver_share"})
      shares += *row.number(column);
    CHECK(shares == Approx(1).epsilon(1e-12));
    CHECK(row.number("idle_fold_share") > 0);  // the jitter of the folds differs
    CHECK(row.number("campaign_devices") == 1 + 2 * 2 * 2);
  }
  CHECK(least == 0);
}

TEST_CASE("settings of an interrupted call are not trained again", "[commands]") {
  const CampaignFolder folder;
  const std::string whole = points_of(folder.learned({}, 2, TrainingStore(folder.path, "inputs", false)));
  CHECK(points_of(folder.learned({}, 2, TrainingStore(folder.path, "inputs", true))) == whole);
  for (const auto& file : std::filesystem::directory_iterator(folder.path / "trainings")) {
    if (file.path().extension() == ".jsonl")
      std::ofstream(file.path()) << "{\"loss\": 0.5, \"seconds\": 1.0}\n{\"loss\": 0.5, \"seconds\": 1.0}\n";
  }
  CHECK(points_of(folder.learned({}, 2, TrainingStore(folder.path, "inputs", true))) != whole);
}

TEST_CASE("the best figure so far never gets worse", "[commands]") {
  const CampaignFolder folder;
  for (const Curve& curve : best_against_hours("s", folder.learned()).curves) {
    for (std::size_t i = 1; i < curve.measured.size(); ++i) {
      CHECK(curve.measured[i].first >= curve.measured[i - 1].first);
      CHECK(curve.measured[i].second <= curve.measured[i - 1].second);
    }
  }
}

TEST_CASE("a campaign that cannot be trained says why", "[commands]") {
  const CampaignFolder folder;
  const auto refuses = [&](const std::string& setting, const std::string& why) {
    CHECK_THROWS_WITH(folder.learned({setting}), Catch::Contains(why));
  };
  refuses("campaign.over=null", "campaign.over: the command learn needs the keys that the search chooses");
  refuses("campaign.over=learning.learning_rate=1..x",
          "campaign.over: learning.learning_rate: expected LOW..HIGH");
  refuses("campaign.over=workers=3..4", "expected keys that keep the 2 devices of a training");
  refuses("campaign.early_stopping={share: 0.5, after: 0.5}", "early_stopping: not valid with campaign");
  refuses("learning.warm_start=2", "learning.warm_start: not valid with campaign");
  refuses("learning.data.samples=1",
          "searches.yaml: campaign: no point of campaign.optimizer={by: random} could be trained: data: "
          "expected at least 2 samples, one for each fold, got 1");
}
