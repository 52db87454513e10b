#pragma once

#include <cstdint>
#include <vector>

namespace stepcast {

/// What a random number is for, so that no two uses share one.
enum class Purpose : std::uint32_t {
  jitter,
  straggler,
  placement,
  background,
  data,
  bootstrap,
  dropout,
  proposal,   ///< points to try first, or at random
  breeding,   ///< parents, crossover and mutation
  candidate,  ///< where an acquisition function is looked at
  duration,   ///< of trainings
  failure,
  slow_spell,
  sample  ///< generated data to learn from
};

/// Names one random number. The same key gives the same number in any order, on any machine.
struct RandomKey {
  std::uint64_t seed = 0;
  Purpose purpose{};
  std::uint32_t worker = 0;
  std::uint32_t step = 0;
  std::uint32_t item = 0;
};

/// Two independent numbers in [0, 1), 53 bits each.
/// Source: J. Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011 (Philox4x32-10,
/// Random123).
struct UniformPair {
  double first, second;
};
UniformPair uniform_pair(const RandomKey& key);

inline double uniform(const RandomKey& key) {
  return uniform_pair(key).first;
}

/// Standard normal (Box-Muller).
double normal(const RandomKey& key);

/// Index in [0, count).
std::size_t uniform_index(const RandomKey& key, std::size_t count);

/// A permutation of 0 .. count-1 (Fisher-Yates); `item` is used up.
std::vector<int> permutation(RandomKey key, int count);

}  // namespace stepcast
