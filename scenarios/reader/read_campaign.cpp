#include "scenarios/reader/read_campaign.hpp"

#include <fmt/format.h>

#include "core/fields.hpp"
#include "scenarios/keys/scenario_keys.hpp"

namespace stepcast {
namespace {

const Fields<Campaign>& early_stopping_fields() {
  static const Fields<Campaign> fields{
      field("share", &Campaign::stopped_share, number(0, 1), required("a number from 0 to 1"),
            "share of the points that are stopped"),
      field("after", &Campaign::stopped_after, number(0, 1), required("a number from 0 to 1"),
            "part of the training after which these points are stopped")};
  return fields;
}

/// `optimizer:` of a campaign as written.
struct ProposerKeys {
  SearchMethod by = SearchMethod::bayesian;
  int count = 1;
  bool shared_history = true;
};

const Fields<ProposerKeys>& proposer_fields() {
  static const Fields<ProposerKeys> fields{
      field("by", &ProposerKeys::by, choice(search_method_words()),
            "optimizer; only proposals of `bayesian` take time"),
      field("count", &ProposerKeys::count, integer(1, 1'000'000),
            "number of optimizers; with `history: own` at most `groups`"),
      field("history", &ProposerKeys::shared_history, choice<bool>({{"shared", true}, {"own", false}}),
            "`own`: an optimizer serves only its own groups and learns only from their points"),
      field<ProposerKeys>({"generation", integer(0, 1'000'000), "0; required for `evolution`",
                           "number of points that must all end before the next points are proposed; 0: a "
                           "group gets its next point as soon as it is free"})};
  return fields;
}

/// Points of a generation, at least one of an evolution.
int read_generation(const YamlMap& map, SearchMethod by) {
  const bool evolution = by == SearchMethod::evolution;
  if (!evolution && !map.has("generation")) return 0;
  return map.at("generation", "points of a generation").integer(evolution ? 1 : 0, 1'000'000);
}

void read_optimizer(const YamlValue& value, CampaignOptions& options) {
  ProposerKeys keys;
  const YamlMap map = read_mapping(value, proposer_fields(), keys);
  Campaign& campaign = options.campaign;
  options.method = keys.by;
  if (keys.by != SearchMethod::bayesian) campaign.cost = {};  // breeding, drawing and boxes take no time
  campaign.generation = read_generation(map, keys.by);
  campaign.optimizers = keys.count;
  campaign.shared_history = keys.shared_history;
  if (!keys.shared_history && keys.count > 1 && keys.by == SearchMethod::direct)
    map.at("history").refuse("not valid with by: direct, whose optimizers would all propose the same points");
  if (!keys.shared_history && keys.count > campaign.groups)
    value.refuse(fmt::format(
        "history: own needs at most one optimizer for each group; got {} optimizers and {} groups",
        keys.count, campaign.groups));
}

/// Time of a proposal by campaigns/bayesian.hpp over six parameters, measured by campaigns_proposal_cost on
/// one core of an Intel Xeon at 2.5 GHz (docs/reference/campaigns.md).
struct GaussianProposal {
  Seconds base{18e-3}, cubic{12e-9};
};

const Fields<GaussianProposal>& proposal_fields() {
  constexpr auto kMeaning = "a proposal after n points takes base + cubic n^3";
  static const Fields<GaussianProposal> fields{
      field("base", &GaussianProposal::base, duration(), kMeaning),
      field("cubic", &GaussianProposal::cubic, duration(), kMeaning)};
  return fields;
}

void read_proposal(const YamlValue& value, Campaign& campaign) {
  GaussianProposal proposal;
  read_mapping(value, proposal_fields(), proposal);
  campaign.cost = {proposal.base, proposal.cubic};
}

const Fields<Campaign>& search_fields() {
  const Form<std::int64_t> count = integer(1, 1'000'000);
  static const Fields<Campaign> fields{
      field("points", &Campaign::points, count, required("an integer >= 1"), "points that are evaluated"),
      field("groups", &Campaign::groups, count, "points that are evaluated at the same time"),
      field("folds", &Campaign::folds, count, "trainings of each point"),
      field("folds_at_once", &Campaign::folds_at_once, count,
            "folds of a point that are trained at the same time, at most `folds`"),
      field("point_spread", &Campaign::point_spread, number(0, 10),
            "sigma of the logarithm of a lognormal factor of mean 1 for each point"),
      field("fold_spread", &Campaign::fold_spread, number(0, 10), "the same for each fold"),
      field<Campaign>({"early_stopping", KeyType::mapping, "none", "a share of the points is stopped early",
                       keys_inside<early_stopping_fields>},
                      [](const YamlValue& value, Campaign& campaign) {
                        read_mapping(value, early_stopping_fields(), campaign);
                      })};
  return fields;
}

const Fields<CampaignOptions>& campaign_fields() {
  static const Fields<CampaignOptions> fields{
      part(&CampaignOptions::campaign, search_fields()),
      field<CampaignOptions>({"optimizer", KeyType::mapping, "see its keys", "optimizer that proposes points",
                              keys_inside<proposer_fields>}),
      field<CampaignOptions>({"proposal", KeyType::mapping, "see its keys",
                              "time of a proposal of a Gaussian process", keys_inside<proposal_fields>}),
      field("steps", &CampaignOptions::steps, integer(1),
            otherwise("the scenario's epochs, or `learning.mini_batches`"),
            "steps of one training; with `faults`, `faults.steps` counts instead"),
      field("draws", &CampaignOptions::draws, integer(1, 1'000'000),
            "simulated campaigns; the columns are their means"),
      field("over", &CampaignOptions::over, text(), otherwise("required by `learn`"),
            "`learn`: keys that the search chooses, in the form of `search --over`"),
      field("objective", &CampaignOptions::objective, one_of({"loss", "accuracy"}),
            "`learn`: mean over the folds that the search minimises or maximises")};
  return fields;
}

}  // namespace

const Keys& campaign_keys() {
  return campaign_fields().keys();
}

CampaignOptions read_campaign(const YamlValue& value, const Plan& plan, const Platform& platform) {
  CampaignOptions options;
  const YamlMap map = read_mapping(value, campaign_fields(), options);
  Campaign& campaign = options.campaign;
  if (campaign.folds_at_once > campaign.folds)
    map.at("folds_at_once")
        .refuse(fmt::format("expected at most {} folds, got {}", campaign.folds, campaign.folds_at_once));
  campaign.training_devices = plan.devices;
  const GaussianProposal measured;
  campaign.cost = {measured.base, measured.cubic};
  if (const auto proposal = map.maybe("proposal")) read_proposal(*proposal, campaign);
  if (const auto optimizer = map.maybe("optimizer")) read_optimizer(*optimizer, options);
  const std::int64_t needed = campaign_devices(campaign);
  if (needed > platform.devices()) {
    value.refuse(fmt::format("needs {} devices, but platform {} has {}; set platform.nodes (at most {})",
                             needed, platform.name, platform.devices(), platform.max_nodes));
  }
  return options;
}

}  // namespace stepcast
