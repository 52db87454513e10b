#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "campaigns/schedule.hpp"
#include "campaigns/search_method.hpp"

namespace stepcast {

/// A point that a campaign evaluates.
struct CampaignTrial {
  Trial trial;
  CampaignProposal proposal;
  double end = 0;     ///< when its last fold ends [s]
  double merit = 0;   ///< what the search maximises; not finite: the point failed
  double figure = 0;  ///< what users know the point by, such as its loss
};

/// A search that runs as a campaign: every proposal is made at its simulated time, from the results that have
/// ended by then. With a shared history, all optimizers know all these results; otherwise, each knows those
/// of its own groups. The caller evaluates one point after the other: `next`, then `ended`.
class CampaignSearch {
 public:
  /// @param campaign  `campaign.generation` is the population size of an evolution, which proposes no point
  ///                  of the next generation before all results of one are known. Other methods wait because
  ///                  the schedule has a barrier after every `generation` points.
  /// @throws std::invalid_argument for an invalid campaign or space
  CampaignSearch(Campaign campaign, const Space& space, SearchMethod method);

  /// The values of the next point; nothing after the last one.
  std::optional<Values> next();
  /// The durations of the folds of that point, its merit and its figure.
  void ended(const std::vector<Seconds>& folds, double merit, double figure);

  const std::vector<CampaignTrial>& trials() const { return trials_; }  ///< in the order of the proposals
  CampaignTimes times() const { return schedule_.times(); }

 private:
  /// Results that optimizers share, and the search that learns from them.
  struct History {
    std::unique_ptr<OptionSearch> search;
    std::vector<CampaignTrial> running;  ///< whose results the search does not know
    double informed = 0;                 ///< it knows all results that ended by this time [s]
  };

  Trial ask(History& history, CampaignProposal& proposal);
  static void tell(History& history, double time);
  History& history_of(const CampaignProposal& proposal);

  Campaign campaign_;
  CampaignSchedule schedule_;
  std::vector<History> histories_;
  std::vector<CampaignTrial> trials_;
};

}  // namespace stepcast
