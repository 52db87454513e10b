#include "commands/learn/learned_campaign.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <optional>
#include <stdexcept>
#include <utility>

#include "commands/fingerprint.hpp"
#include "core/error.hpp"
#include "forecast/processes/process_pool.hpp"
#include "report/results/results.hpp"
#include "runtime/learning/learning_runs.hpp"
#include "validate/compare/learning_curves.hpp"

namespace stepcast {
namespace {

/// A setting to train, and its folds.
struct CampaignSetting {
  Point point;
  int folds = 1;
  int devices = 1;  ///< of one training
};

/// The result of a setting: a row for each fold with `loss`, `accuracy` and `seconds`, or one with `failed`.
using FoldRows = std::vector<Row>;

bool is_campaign_key(const std::string& path) {
  return path == "campaign" || path.starts_with("campaign.");
}

/// The scenario of the trainings alone, with one seed. The points of the scenario remain.
Scenario without_campaign(Scenario scenario) {
  std::erase_if(scenario.settings, [](const Assignment& one) { return is_campaign_key(one.path); });
  std::erase_if(scenario.assumptions, [](const Assumption& one) { return is_campaign_key(one.key); });
  for (Point& point : scenario.points)
    std::erase_if(point.values, [](const Assignment& one) { return is_campaign_key(one.path); });
  if (find_path(scenario.document, "campaign") != nullptr) assign(scenario.document, removal("campaign"));
  scenario.settings.push_back(assignment("learning.seeds", 1));
  return scenario;
}

/// One campaign while it runs.
struct Running {
  LearnedCampaign result;
  std::vector<Assignment> common;  ///< values of the point that concern the trainings
  CampaignOptions options;
  CampaignSearch search;
  std::string wanted = {};   ///< name of the setting that it waits for; empty after the last one
  std::string failure = {};  ///< why a setting could not be trained
};

/// Settings that are trained, by name.
class Trainer {
 public:
  explicit Trainer(const LearningJob& job) : job_(job), scenario_(without_campaign(job.scenario)) {}

  const FoldRows& rows(const std::string& name) const { return known_.at(name); }

  /// Trains the settings that are not known.
  void train(const std::map<std::string, CampaignSetting>& settings) {
    std::vector<LearningRun> runs;
    for (const auto& [name, setting] : settings) {
      if (known_.contains(name)) continue;
      const auto finished = job_.finished.known(file_name(name));
      if (finished)
        known_[name] = read_json_lines(*finished, "a setting").rows;
      else
        add_runs(name, setting, runs);
    }
    if (runs.empty()) return;
    LearningJob job = job_;
    job.finished = {};
    job.shows_progress = false;
    std::map<std::string, FoldRows> rows;
    for (const LearnedRun& run : learned_runs(trained(job, runs), 0)) {
      Row& row = rows[run.point].emplace_back();
      if (std::isfinite(run.loss)) row.set("loss", run.loss);
      if (run.accuracy) row.set("accuracy", *run.accuracy);
      row.set("seconds", run.seconds);
    }
    for (auto& [name, of_name] : rows) keep(name, std::move(of_name));
  }

 private:
  static std::string file_name(const std::string& name) {
    return fingerprint_of(std::vector<InputFile>(), {name});
  }

  void keep(const std::string& name, FoldRows rows) {
    std::string text;
    for (const Row& row : rows) text += to_json_line({}, row) + "\n";
    job_.finished.add(file_name(name), text);
    known_[name] = std::move(rows);
  }

  /// The trainings of a setting. One that cannot be trained gets its row at once.
  void add_runs(const std::string& name, const CampaignSetting& setting, std::vector<LearningRun>& runs) {
    Scenario one = scenario_;
    one.points = {setting.point};
    try {
      const LearningRun run = learning_runs(one).front();
      if (run.experiment.plan.devices != setting.devices)
        throw InputError(
            fmt::format("campaign.over: expected keys that keep the {} devices of a training, got {}",
                        setting.devices, run.experiment.plan.devices));
      Experiment divided = run.experiment;
      divided.learning->data.folds = setting.folds;
      learning_data(divided);  // refuses data with fewer samples than folds
      for (int fold = 0; fold < setting.folds; ++fold) {
        LearningRun& of_fold = runs.emplace_back(run);
        of_fold.seed = fold + 1;
        of_fold.experiment.seed += fold;  // its steps take other times
        of_fold.experiment.learning->data.fold = fold;
        of_fold.experiment.learning->data.folds = setting.folds;
      }
    } catch (const InputError& error) {
      Row row;
      row.set("failed", std::string(error.what()));
      keep(name, {row});
    }
  }

  const LearningJob& job_;
  const Scenario scenario_;  ///< of the trainings
  std::map<std::string, FoldRows> known_;
};

std::vector<SearchKey> keys_of(const CampaignOptions& campaign, const Scenario& scenario) {
  if (campaign.over.empty())
    throw InputError(
        fmt::format("{}: campaign.over: the command learn needs the keys that the search chooses, "
                    "such as learning.learning_rate=0.001..1:log",
                    scenario.file.string()));
  try {
    return read_search_keys(campaign.over, scenario);
  } catch (const InputError& error) {
    std::string why = error.what();
    const std::string option = "--over ";
    if (why.starts_with(option)) why.erase(0, option.size());
    throw InputError(fmt::format("{}: campaign.over: {}", scenario.file.string(), why));
  }
}

/// Refuses what the trainings of a campaign do not have.
void check_supported(const Scenario& scenario, const LearningRun& run) {
  const auto refuse = [&](const char* key, const char* why) {
    throw InputError(fmt::format("{}: {}: not valid with campaign: {}", scenario.file.string(), key, why));
  };
  const LearningOptions& learning = *run.experiment.learning;
  if (learning.warm_start > 0) refuse("learning.warm_start", "its data would include those of the fold");
  if (!learning.trends.empty()) refuse("learning.trends", "they compare trainings, not campaigns");
  if (run.experiment.campaign->campaign.stopped_share > 0)
    refuse("campaign.early_stopping", "the command learn trains every point to the end");
}

Running started(const Scenario& scenario, const Point& point, const LearningRun& run) {
  check_supported(scenario, run);
  const CampaignOptions& options = *run.experiment.campaign;
  const std::vector<SearchKey> keys = keys_of(options, scenario);
  Campaign campaign = options.campaign;
  campaign.seed = run.experiment.seed;  // moved by the seed of the run
  try {
    return {{run.point, run.seed, keys, options.objective},
            point.values,
            options,
            CampaignSearch(campaign, space_of(keys), options.method)};
  } catch (const std::invalid_argument& error) {
    throw InputError(fmt::format("{}: campaign: {}", scenario.file.string(), error.what()));
  }
}

/// The mean of a column over the folds; NaN if a fold has none.
double figure_of(const FoldRows& rows, const std::string& objective) {
  double sum = 0;
  for (const Row& row : rows) sum += row.number(objective).value_or(std::numeric_limits<double>::quiet_NaN());
  return sum / rows.size();
}

/// The value that the search maximises: the accuracy, or minus the logarithm of the loss. Without the
/// logarithm, one training that almost diverges would make all others look alike to a Gaussian process.
double merit_of(double figure, const std::string& objective) {
  constexpr double kLeast = 1e-300;  // of losses: the logarithm of 0 is not finite
  return objective == "loss" ? -std::log(std::max(figure, kLeast)) : figure;
}

std::vector<Seconds> durations_of(const FoldRows& rows) {
  std::vector<Seconds> folds;
  for (const Row& row : rows) folds.push_back({row.number("seconds").value_or(0)});
  return folds;
}

/// The next setting of a campaign. The name has all values of the training, so that equal ones are trained
/// once.
std::optional<CampaignSetting> next_setting(Running& campaign) {
  const auto values = campaign.search.next();
  if (!values) return std::nullopt;
  CampaignSetting setting{
      {"", campaign.common}, campaign.options.campaign.folds, campaign.options.campaign.training_devices};
  std::ranges::move(search_values(campaign.result.keys, *values), std::back_inserter(setting.point.values));
  setting.point.name = fmt::format("{}, folds={}", point_name(setting.point.values), setting.folds);
  return setting;
}

/// @throws InputError if all points of a campaign failed
void check_found(const Scenario& scenario, const Running& campaign) {
  const auto succeeded = [](const CampaignTrial& one) { return std::isfinite(one.merit); };
  if (std::ranges::any_of(campaign.result.trials, succeeded)) return;
  throw InputError(fmt::format("{}: campaign: no point of {} could be trained: {}", scenario.file.string(),
                               campaign.result.point,
                               campaign.failure.empty() ? "all diverged" : campaign.failure));
}

/// One point of every campaign. @return false after the last one
bool train_round(std::vector<Running>& campaigns, Trainer& trainer, TaskProgress& progress) {
  std::map<std::string, CampaignSetting> settings;
  for (Running& campaign : campaigns) {
    const auto setting = next_setting(campaign);
    campaign.wanted = setting ? setting->point.name : "";
    if (setting) settings.emplace(setting->point.name, *setting);
  }
  trainer.train(settings);
  for (Running& campaign : campaigns) {
    if (campaign.wanted.empty()) continue;
    const FoldRows& rows = trainer.rows(campaign.wanted);
    if (campaign.failure.empty()) campaign.failure = rows.front().text("failed");
    const double figure = figure_of(rows, campaign.options.objective);
    campaign.search.ended(durations_of(rows), merit_of(figure, campaign.options.objective), figure);
    progress.one_done();
  }
  return !settings.empty();
}

}  // namespace

bool is_learned_campaign(const std::vector<LearningRun>& runs) {
  return runs.front().experiment.campaign && runs.front().experiment.learning;
}

std::vector<LearnedCampaign> learned_campaigns(const LearningJob& job, const std::vector<LearningRun>& runs) {
  const Scenario trainings = without_campaign(job.scenario);
  std::vector<Running> campaigns;
  for (const LearningRun& run : runs) {
    const auto point = std::ranges::find(trainings.points, run.point, &Point::name);
    campaigns.push_back(started(job.scenario, *point, run));
  }
  std::size_t points = 0;
  for (const Running& one : campaigns) points += one.options.campaign.points;
  TaskProgress progress(points, "points");
  Trainer trainer(job);
  while (train_round(campaigns, trainer, progress)) {
  }
  progress.clear();
  std::vector<LearnedCampaign> learned;
  for (Running& campaign : campaigns) {
    campaign.result.trials = campaign.search.trials();
    campaign.result.times = campaign.search.times();
    check_found(job.scenario, campaign);
    learned.push_back(std::move(campaign.result));
  }
  return learned;
}

}  // namespace stepcast
