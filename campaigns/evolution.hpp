#pragma once

#include "campaigns/option_search.hpp"

namespace stepcast {

/// Options of the evolutionary search.
struct EvolutionOptions {
  int population = 10;
  int generations = 10;  ///< G: generations after generation 0, which is random
  std::uint64_t seed = 1;
};

/// Number of fittest members that are kept unchanged: 20 % of the population, at least one.
int elite_count(int population);

/// Crossover: p_child = r (p_A - p_B) + p_A for r in (0, 1), where A is the fitter parent. The caller clamps
/// the result to its range.
double crossover(double fitter, double other, double r);

/// Michalewicz's non-uniform mutation in generation g of G: p_child + m with
///   m = (1 - r1^((1 - g / G)^3)) x (p_max - p_child where r2 > 0.5, else p_low - p_child).
struct Mutation {
  double r1, r2;
  int generation, generations;
};
double mutated(double child, double low, double high, const Mutation& mutation);

/// The evolutionary algorithm over chromosomes of parameters: the 20 % fittest stay, the others are children.
/// Each child has two parents; each parent is the fitter of two different members drawn uniformly (binary
/// tournament). The child's parameters are crossed over and mutated one by one.
///
/// Numbers are crossed over and mutated on their range (on its logarithm if the range is logarithmic),
/// clamped to it, and rounded at the end. Words of a choice have no distance: a child takes the word of A or
/// B with equal probability, and mutates to a random word with probability 1 - r1^((1 - g / G)^3), the
/// relative step of a number. The next generation is bred after all results of the current one were told;
/// until then `ask` returns nothing. Source: J.-R. Vlimant et al., "Training and optimization of neural
/// networks and generative adversarial networks over distributed resources", slides, "Evolutionary
/// algorithm"; Z. Michalewicz, "Genetic algorithms + data structures = evolution programs", Springer 1992
/// (non-uniform mutation).
class Evolution : public OptionSearch {
 public:
  Evolution(Space space, EvolutionOptions options);

  std::optional<Trial> ask() override;
  void tell(const Trial& trial, double value) override;
  int generation() const { return generation_; }

 private:
  /// A member of the population before its value is known.
  struct Member {
    Trial trial;
    std::vector<double> genes;  ///< unrounded values, as logarithms if the range is logarithmic
    double value = 0;
    bool proposed = false, evaluated = false;
  };
  void breed();
  Member child(const std::vector<Member>& parents, std::uint32_t index) const;

  Space space_;
  EvolutionOptions options_;
  int generation_ = 0;
  int asked_ = 0;
  std::vector<Member> members_;
};

}  // namespace stepcast
