#include "campaigns/search_method.hpp"

#include <nlopt.h>

#include <algorithm>
#include <map>
#include <memory>
#include <new>
#include <stdexcept>

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
      nlopt_create(NLOPT_GN_DIRECT_L, static_cast<unsigned>(space_.size())), nlopt_destroy);
  if (!optimizer) throw std::bad_alloc();
  replay.optimizer = optimizer.get();
  nlopt_set_max_objective(optimizer.get(), known_result, &replay);
  nlopt_set_lower_bounds1(optimizer.get(), 0);
  nlopt_set_upper_bounds1(optimizer.get(), 1);
  nlopt_set_maxeval(optimizer.get(), 1000 + 20 * static_cast<int>(results.size()));
  std::vector<double> best(space_.size(), 0.5);
  double most = 0;
  nlopt_optimize(optimizer.get(), best.data(), &most);
  return replay.unknown;
}

std::optional<Trial> Direct::ask() {
  if (pending_) return std::nullopt;
  const auto number = static_cast<std::uint32_t>(outcomes_.size());
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

}  // namespace stepcast
