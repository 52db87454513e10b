#include "campaigns/campaign_search.hpp"

#include <algorithm>
#include <utility>

namespace stepcast {
namespace {

/// An evolution waits by itself: it proposes nothing until its generation is known.
Campaign scheduled(Campaign campaign, SearchMethod method) {
  if (method == SearchMethod::evolution) campaign.generation = 0;
  return campaign;
}

bool ends_first(const CampaignTrial& one, const CampaignTrial& other) {
  return std::pair(one.end, one.trial.number) < std::pair(other.end, other.trial.number);
}

}  // namespace

CampaignSearch::CampaignSearch(Campaign campaign, const Space& space, SearchMethod method)
    : campaign_(campaign), schedule_(scheduled(campaign, method)) {
  const int histories = campaign.shared_history ? 1 : campaign.optimizers;
  SearchOptions options{.method = method, .population = campaign.generation};
  options.evaluations = (campaign.points + histories - 1) / histories;
  for (int i = 0; i < histories; ++i) {
    constexpr std::uint64_t kApart = 1'000'003;  // optimizers of their own draw other points
    options.seed = campaign.seed + kApart * static_cast<std::uint64_t>(i);
    histories_.push_back({make_optimizer(space, options), {}, 0});
  }
}

CampaignSearch::History& CampaignSearch::history_of(const CampaignProposal& proposal) {
  return histories_[campaign_.shared_history ? 0 : static_cast<std::size_t>(proposal.optimizer)];
}

/// Tells the search the results that have ended by `time`, in the order of their ends.
void CampaignSearch::tell(History& history, double time) {
  std::sort(history.running.begin(), history.running.end(), ends_first);
  const auto later = std::find_if(history.running.begin(), history.running.end(),
                                  [&](const CampaignTrial& one) { return one.end > time; });
  std::for_each(history.running.begin(), later,
                [&](const CampaignTrial& one) { history.search->tell(one.trial, one.merit); });
  history.running.erase(history.running.begin(), later);
  history.informed = std::max(history.informed, time);
}

Trial CampaignSearch::ask(History& history, CampaignProposal& proposal) {
  schedule_.wait(proposal, history.informed);  // a generation that another group has waited for
  tell(history, proposal.asked);
  auto trial = history.search->ask();
  while (!trial) {
    schedule_.wait(proposal, history.running.front().end);
    tell(history, proposal.asked);
    trial = history.search->ask();
  }
  return *trial;
}

std::optional<Values> CampaignSearch::next() {
  if (static_cast<int>(trials_.size()) == campaign_.points) return std::nullopt;
  CampaignTrial& next = trials_.emplace_back();
  next.proposal = schedule_.propose();
  next.trial = ask(history_of(next.proposal), next.proposal);
  return next.trial.values;
}

void CampaignSearch::ended(const std::vector<Seconds>& folds, double merit, double figure) {
  CampaignTrial& one = trials_.back();
  one.end = schedule_.train(one.proposal, folds);
  one.merit = merit;
  one.figure = figure;
  history_of(one.proposal).running.push_back(one);
}

}  // namespace stepcast
