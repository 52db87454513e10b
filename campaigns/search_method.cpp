#include "campaigns/search_method.hpp"

#include <algorithm>
#include <stdexcept>

#include "campaigns/bayesian.hpp"
#include "campaigns/direct.hpp"
#include "campaigns/evolution.hpp"

namespace stepcast {
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
