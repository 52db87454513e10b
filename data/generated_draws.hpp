#pragma once

#include <cstdint>

#include "core/random.hpp"

namespace stepcast {

/// Random numbers of one generated sample: draw n is the same whoever asks, and in whatever order.
class Draws {
 public:
  Draws(std::uint64_t seed, std::int64_t sample, std::uint32_t stream)
      : key_{.seed = seed,
             .purpose = Purpose::sample,
             .worker = stream,
             .step = static_cast<std::uint32_t>(sample),
             .item = 0} {}

  double uniform(std::uint32_t n) const { return stepcast::uniform(at(n)); }
  double uniform(std::uint32_t n, double low, double high) const { return low + (high - low) * uniform(n); }
  double normal(std::uint32_t n) const { return stepcast::normal(at(n)); }
  std::int64_t below(std::uint32_t n, std::int64_t count) const {
    return static_cast<std::int64_t>(uniform_index(at(n), static_cast<std::size_t>(count)));
  }

 private:
  RandomKey at(std::uint32_t n) const {
    RandomKey key = key_;
    key.item = n;
    return key;
  }

  RandomKey key_;
};

/// Streams of one seed.
enum DrawStream : std::uint32_t { kPatterns, kSample, kNoise };

}  // namespace stepcast
