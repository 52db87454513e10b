#include "scenarios/reader/read_campaign.hpp"

#include <fmt/format.h>

#include "scenarios/keys/scenario_keys.hpp"

namespace stepcast {
namespace {

// Time of a proposal by campaigns/bayesian.hpp over six parameters, measured by campaigns_proposal_cost on
// one core of an Intel Xeon at 2.5 GHz (docs/reference/campaigns.md).
constexpr Seconds kBayesianBase{18e-3};
constexpr Seconds kBayesianCubic{12e-9};

int count(const YamlMap& map, const char* key, int otherwise) {
  const auto value = map.maybe(key);
  return value ? static_cast<int>(value->integer(1, 1'000'000)) : otherwise;
}

double number(const YamlMap& map, const char* key, double high, double otherwise) {
  const auto value = map.maybe(key);
  return value ? value->number(0, high) : otherwise;
}

void read_optimizer(const YamlValue& value, CampaignOptions& options) {
  Campaign& campaign = options.campaign;
  const YamlMap map = read_map(value, campaign_optimizer_keys());
  const auto by = map.maybe("by");
  if (by) options.method = static_cast<SearchMethod>(by->one_of(search_method_names()));
  if (options.method != SearchMethod::bayesian)
    campaign.cost = {};  // breeding, drawing and boxes take no time
  if (options.method == SearchMethod::evolution) {
    campaign.generation =
        static_cast<int>(map.at("generation", "points of a generation").integer(1, 1'000'000));
  } else if (const auto generation = map.maybe("generation")) {
    campaign.generation = static_cast<int>(generation->integer(0, 1'000'000));
  }
  campaign.optimizers = count(map, "count", 1);
  if (const auto history = map.maybe("history")) {
    campaign.shared_history = history->one_of({"shared", "own"}) == 0;
    if (!campaign.shared_history && campaign.optimizers > 1 && options.method == SearchMethod::direct)
      history->refuse("not valid with by: direct, whose optimizers would all propose the same points");
  }
}

/// Time that a Gaussian process takes to propose a point. Default: the measured time of this project's own
/// search.
ProposalCost read_proposal(const YamlMap& map) {
  ProposalCost cost{kBayesianBase, kBayesianCubic};
  if (const auto given = map.maybe("proposal")) {
    const YamlMap keys = read_map(*given, proposal_keys());
    if (const auto base = keys.maybe("base")) cost.base = base->seconds();
    if (const auto cubic = keys.maybe("cubic")) cost.cubic = cubic->seconds();
  }
  return cost;
}

}  // namespace

CampaignOptions read_campaign(const YamlValue& value, const Plan& plan, const Platform& platform) {
  const YamlMap map = read_map(value, campaign_keys());
  CampaignOptions options;
  Campaign& campaign = options.campaign;
  campaign.points = static_cast<int>(map.at("points", "an integer >= 1").integer(1, 1'000'000));
  campaign.groups = count(map, "groups", 1);
  campaign.folds = count(map, "folds", 1);
  campaign.folds_at_once = count(map, "folds_at_once", 1);
  if (campaign.folds_at_once > campaign.folds)
    map.at("folds_at_once")
        .refuse(fmt::format("expected at most {} folds, got {}", campaign.folds, campaign.folds_at_once));
  campaign.training_devices = plan.devices;
  campaign.point_spread = number(map, "point_spread", 10, 0);
  campaign.fold_spread = number(map, "fold_spread", 10, 0);
  if (const auto early = map.maybe("early_stopping")) {
    const YamlMap keys = read_map(*early, early_stopping_keys());
    campaign.stopped_share = keys.at("share", "a number from 0 to 1").number(0, 1);
    campaign.stopped_after = keys.at("after", "a number from 0 to 1").number(0, 1);
  }
  campaign.cost = read_proposal(map);
  if (const auto optimizer = map.maybe("optimizer")) {
    read_optimizer(*optimizer, options);
    if (!campaign.shared_history && campaign.optimizers > campaign.groups)
      optimizer->refuse(fmt::format(
          "history: own needs at most one optimizer for each group; got {} optimizers and {} groups",
          campaign.optimizers, campaign.groups));
  }
  if (const auto steps = map.maybe("steps")) options.steps = static_cast<double>(steps->integer(1));
  options.draws = count(map, "draws", options.draws);
  if (const auto over = map.maybe("over")) options.over = over->text();
  const std::vector<std::string> objectives{"loss", "accuracy"};
  const auto objective = map.maybe("objective");
  options.objective = objectives[objective ? objective->one_of(objectives) : 0];
  const std::int64_t needed = campaign_devices(campaign);
  if (needed > platform.devices()) {
    value.refuse(fmt::format("needs {} devices, but platform {} has {}; set platform.nodes (at most {})",
                             needed, platform.name, platform.devices(), platform.max_nodes));
  }
  return options;
}

}  // namespace stepcast
