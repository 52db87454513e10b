#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "campaigns/option_search.hpp"
#include "campaigns/schedule.hpp"

namespace stepcast {

/// DIRECT-L: divides the space into boxes, and next tries the centers of those boxes that could hold the best
/// point for some Lipschitz constant of the function, with a bias to boxes near good points. The words of a
/// choice are positions in the order of the list. NLopt implements it.
///
/// NLopt calls the function that it optimises, while `ask` returns a point. So `ask` starts NLopt again,
/// answers it from the known results, and stops it at the first point whose result is unknown. The n-th
/// proposal costs about n look-ups. Each proposal depends on all results before it, so one trial is pending
/// at a time. The method draws no random numbers while it finds new points; in a finite space it soon finds
/// none, and points are then drawn uniformly.
///
/// Source: J. M. Gablonsky, C. T. Kelley, "A locally-biased form of the DIRECT algorithm", J. Global
/// Optimization 21 (2001) 27-37; S. G. Johnson, "The NLopt nonlinear-optimization package", version 2.7.1.
class Direct : public OptionSearch {
 public:
  Direct(Space space, std::uint64_t seed);

  std::optional<Trial> ask() override;
  void tell(const Trial& trial, double value) override;

 private:
  std::optional<Values> first_unknown() const;

  Space space_;
  std::uint64_t seed_;
  std::vector<Outcome> outcomes_;
  std::optional<Trial> pending_;
};

/// Options of a search by any method.
struct SearchOptions {
  SearchMethod method = SearchMethod::bayesian;
  int evaluations = 30;  ///< trials that will be proposed
  int population = 0;    ///< population of the evolutionary search; 0: see population_of
  std::uint64_t seed = 1;
};

/// The population of the evolutionary search: the given one, or a tenth of the evaluations, from 5 to 50.
int population_of(const SearchOptions& options);

/// Creates the optimizer of a method.
/// @throws std::invalid_argument for an invalid space, or if evaluations < 1
std::unique_ptr<OptionSearch> make_optimizer(const Space& space, const SearchOptions& options);

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
