#pragma once

#include <cstdint>

#include "core/random.hpp"

namespace stepcast {

/// The key of one dropout layer's mask in one step.
inline std::uint32_t dropout_key(std::uint64_t seed, std::uint32_t layer, std::uint32_t step) {
  const RandomKey key{.seed = seed, .purpose = Purpose::dropout, .worker = 0, .step = step, .item = layer};
  return static_cast<std::uint32_t>(uniform(key) * 4294967296.0);
}

/// 32 random bits for element `index` (its position in memory), a pure function of key and index, so that the
/// backward pass draws the mask again instead of storing it. Uses MurmurHash3's finalizer because it
/// vectorizes; Philox would cost more than the rest of the layer. It is constexpr so that GPU code may call
/// it. Source: A. Appleby, MurmurHash3 (public domain), fmix32.
constexpr std::uint32_t dropout_bits(std::uint32_t key, std::uint32_t index) {
  std::uint32_t h = key ^ (index * 0x9e3779b9u);
  h ^= h >> 16;
  h *= 0x85ebca6bu;
  h ^= h >> 13;
  h *= 0xc2b2ae35u;
  return h ^ (h >> 16);
}

/// An element is dropped if its bits are below this.
inline std::uint32_t dropout_threshold(double share) {
  return share >= 1 ? 0xffffffffu : static_cast<std::uint32_t>(share * 4294967296.0);
}

}  // namespace stepcast
