#pragma once

#include "campaigns/optimizer.hpp"

namespace stepcast {

struct EvolutionOptions {
  int population = 10;
  int generations = 10;  ///< G: after the first, random one (generation 0)
  std::uint64_t seed = 1;
};

/// Fittest that stay as they are: 20 %, at least one.
int elite_count(int population);

/// p_child = r (p_A - p_B) + p_A for r in (0, 1), where A is the fitter parent; the caller keeps it in its
/// range.
double crossover(double fitter, double other, double r);

/// Michalewicz's non-uniform mutation in generation g of G: p_child + m with
///   m = (1 - r1^((1 - g / G)^3)) x (p_max - p_child where r2 > 0.5, else p_low - p_child).
struct Mutation {
  double r1, r2;
  int generation, generations;
};
double mutated(double child, double low, double high, const Mutation& mutation);

/// The evolutionary algorithm over chromosomes of parameters: the 20 % fittest stay, the others are children.
/// Each child has two parents, each the fitter of two different members drawn evenly (binary tournament), is
/// crossed over and mutated, parameter by parameter.
///
/// Numbers are crossed and mutated on their range (on its logarithm where it is logarithmic), kept inside and
/// rounded at the end. Words have no distance: a child takes A's or B's with equal chances, and mutates to a
/// random one with the probability 1 - r1^((1 - g / G)^3) that a number moves by. All of a generation must be
/// told before the next is bred; until then `ask` returns nothing. Source: J.-R. Vlimant et al., "Training
/// and optimization of neural networks and generative adversarial networks over distributed resources",
/// slides, "Evolutionary algorithm"; Z. Michalewicz, "Genetic algorithms + data structures = evolution
/// programs", Springer 1992 (non-uniform mutation).
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
    std::vector<double> genes;  ///< unrounded, on the range (its logarithm where it is logarithmic)
    double value = 0;
    bool asked = false, told = false;
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
