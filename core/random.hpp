#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace stepcast {

/// The use of a random number. Two uses never share a number.
enum class Purpose : std::uint32_t {
  jitter,
  straggler,
  placement,
  background,
  data,
  bootstrap,
  dropout,
  proposal,   ///< hyper-parameter points that are tried first, or drawn at random
  breeding,   ///< parents, crossover and mutation of the evolutionary search
  candidate,  ///< points at which an acquisition function is evaluated
  duration,   ///< durations of trainings
  failure,
  slow_period,
  sample,  ///< generated training data
  link_failure,
  imbalance  ///< work of a worker's samples in a step
};

/// Key of one random number. The same key gives the same number, in any order and on any machine.
struct RandomKey {
  std::uint64_t seed = 0;
  Purpose purpose{};
  std::uint32_t worker = 0;
  std::uint32_t step = 0;
  std::uint32_t item = 0;
};

/// Two independent uniform numbers in [0, 1), 53 bits each.
/// Source: J. Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011 (Philox4x32-10,
/// Random123).
struct UniformPair {
  double first, second;
};
UniformPair uniform_pair(const RandomKey& key);

/// A uniform number in [0, 1).
inline double uniform(const RandomKey& key) {
  return uniform_pair(key).first;
}

/// A hash of `hash` and `value` that depends on their order: the finalizer of splitmix64 (S. Vigna).
inline std::uint64_t mixed_hash(std::uint64_t hash, std::uint64_t value) {
  std::uint64_t z = hash * 0x9E3779B97F4A7C15U + value;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
  return z ^ (z >> 31);
}

/// A standard normal number (Box-Muller transform).
double normal(const RandomKey& key);

/// Largest number of items of one call of `normal_numbers`.
inline constexpr std::size_t kNormalBlock = 32;

/// Sets `numbers[i]` to `normal(key)` with `key.item = items[i]`, to the bit. A block of numbers costs less
/// than single ones, because the processor works on several logarithms or cosines at once.
/// @param items  at most kNormalBlock
void normal_numbers(const RandomKey& key, std::span<const std::uint32_t> items, std::span<double> numbers);

/// A uniform index in [0, count).
std::size_t uniform_index(const RandomKey& key, std::size_t count);

/// A random permutation of 0 .. count - 1 (Fisher-Yates). Sets `key.item` for each number.
std::vector<int> permutation(RandomKey key, int count);

}  // namespace stepcast
