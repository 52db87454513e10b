#pragma once

#include <string>
#include <vector>

#include "core/random.hpp"

namespace stepcast {

/// One parameter of a search space.
struct Parameter {
  enum class Kind { real, integer, choice };

  std::string name;
  Kind kind = Kind::real;
  double low = 0, high = 1;               ///< range of a number, both ends included
  bool logarithmic = false;               ///< numbers: distances are taken on the logarithm
  std::vector<std::string> choices = {};  ///< words of a choice, without an order
};

/// A search space: the product of its parameters.
using Space = std::vector<Parameter>;

/// A point of a space: one value for each parameter. The value of a choice is the index of its word.
using Values = std::vector<double>;

/// Checks a space. @throws std::invalid_argument for an empty space, an empty range, or a logarithmic one
/// that is not > 0
void check(const Space& space);

/// Number of different points; infinity if a parameter is real.
double point_count(const Space& space);

/// The value of a parameter at position `u` in [0, 1] of its range, or of its list of words. Integers are
/// rounded so that a uniform `u` makes each equally likely; on a logarithmic range, in proportion to its
/// share of the logarithm.
double value_at(const Parameter& parameter, double u);

/// Position of a number on its range, in [0, 1]. The inverse of `value_at` up to rounding.
double position_of(const Parameter& parameter, double value);

/// A uniformly drawn point. Sets `key.item` for each parameter.
Values random_values(const Space& space, RandomKey key);

/// Coordinates for a Gaussian process: the position of each number, and for a choice of k words k coordinates
/// (one-hot). The coordinate of the chosen word is 1 / sqrt(2), so that two different words are at
/// distance 1.
std::vector<double> features(const Space& space, const Values& values);

}  // namespace stepcast
