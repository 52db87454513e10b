#include "campaigns/search_method.hpp"

#include <nlopt.h>

#include <algorithm>
#include <map>
#include <memory>
#include <new>
#include <stdexcept>
#include <utility>

#include "campaigns/bayesian.hpp"
#include "campaigns/evolution.hpp"

namespace stepcast {
namespace {

/// A run of NLopt on known results, and the first point that it tried without one.
struct Replay {
  const Space& space;
  std::map<Values, double> known;
  nlopt_opt optimizer = nullptr;
  std::optional<Values> unknown = {};
};

/// The function that NLopt maximises. @param positions  of the parameters, in [0, 1]
double known_result(unsigned count, const double* positions, double*, void* data) {
  Replay& replay = *static_cast<Replay*>(data);
  Values values;
  for (unsigned i = 0; i < count; ++i) values.push_back(value_at(replay.space[i], positions[i]));
  const auto found = replay.known.find(values);
  if (found != replay.known.end()) return found->second;
  if (!replay.unknown) replay.unknown = values;
  nlopt_force_stop(replay.optimizer);
  return 0;  // never used: NLopt stops
}

}  // namespace

Direct::Direct(Space space, std::uint64_t seed) : space_(std::move(space)), seed_(seed) {
  check(space_);
}

/// Nothing if NLopt finds only known points in many evaluations.
std::optional<Values> Direct::first_unknown() const {
  Replay replay{space_, {}};
  const std::vector<double> results = finite_values(outcomes_);
  for (std::size_t i = 0; i < results.size(); ++i) replay.known[outcomes_[i].trial.values] = results[i];

  const std::unique_ptr<nlopt_opt_s, decltype(&nlopt_destroy)> optimizer(
      nlopt_create(NLOPT_GN_DIRECT_L, space_.size()), nlopt_destroy);
  if (!optimizer) throw std::bad_alloc();
  replay.optimizer = optimizer.get();
  nlopt_set_max_objective(optimizer.get(), known_result, &replay);
  nlopt_set_lower_bounds1(optimizer.get(), 0);
  nlopt_set_upper_bounds1(optimizer.get(), 1);
  nlopt_set_maxeval(optimizer.get(), 1000 + 20 * results.size());
  std::vector<double> best(space_.size(), 0.5);
  double most = 0;
  nlopt_optimize(optimizer.get(), best.data(), &most);
  return replay.unknown;
}

std::optional<Trial> Direct::ask() {
  if (pending_) return std::nullopt;
  const std::uint32_t number = outcomes_.size();
  auto values = first_unknown();
  if (!values) values = random_values(space_, {seed_, Purpose::proposal, 0, number, 0});
  pending_ = Trial{static_cast<int>(number), *values};
  return pending_;
}

void Direct::tell(const Trial& trial, double value) {
  if (!pending_ || pending_->number != trial.number)
    throw std::invalid_argument("Direct: result for an unknown trial");
  outcomes_.push_back({*pending_, value});
  pending_.reset();
}

namespace {

/// Random search: draws every point uniformly and ignores results. The baseline of the other methods.
class RandomSearch : public OptionSearch {
 public:
  RandomSearch(Space space, std::uint64_t seed) : space_(std::move(space)), seed_(seed) {}

  std::optional<Trial> ask() override {
    const int number = asked_++;
    return Trial{number,
                 random_values(space_, {seed_, Purpose::proposal, 0, static_cast<std::uint32_t>(number), 0})};
  }
  void tell(const Trial&, double) override {}

 private:
  Space space_;
  std::uint64_t seed_;
  int asked_ = 0;
};

}  // namespace

int population_of(const SearchOptions& options) {
  return options.population > 0 ? options.population : std::clamp(options.evaluations / 10, 5, 50);
}

std::unique_ptr<OptionSearch> make_optimizer(const Space& space, const SearchOptions& options) {
  check(space);
  if (options.evaluations < 1) throw std::invalid_argument("make_optimizer: evaluations must be >= 1");
  switch (options.method) {
    case SearchMethod::evolution: {
      const int population = population_of(options);
      const int children = population - elite_count(population);
      const int generations = std::max(1, (options.evaluations - population + children - 1) / children);
      return std::make_unique<Evolution>(space, EvolutionOptions{population, generations, options.seed});
    }
    case SearchMethod::random:
      return std::make_unique<RandomSearch>(space, options.seed);
    case SearchMethod::direct:
      return std::make_unique<Direct>(space, options.seed);
    case SearchMethod::bayesian:
      break;
  }
  return std::make_unique<Bayesian>(space, BayesianOptions{.seed = options.seed});
}

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
    options.seed = campaign.seed + kApart * i;
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
  if (std::ssize(trials_) == campaign_.points) return std::nullopt;
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
