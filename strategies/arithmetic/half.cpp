#include "strategies/arithmetic/half.hpp"

#include <algorithm>
#include <bit>
#include <stdexcept>

namespace stepcast {
namespace {

constexpr std::uint32_t kBias = (127 - 15) << 23;      // between the exponents of the two formats
constexpr std::uint32_t kSmallestNormal = 113U << 23;  // 2^-14
constexpr std::uint32_t kInfinity = 0x7f800000;
constexpr std::uint32_t kHalfInfinity = 0x7c00, kHalfNan = 0x7e00;

inline std::uint32_t half_bits(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t magnitude = bits & 0x7fffffff;
  // 13 bits are cut; adding just under half of a unit, and the last kept bit, rounds ties to even. A carry
  // into the exponent is what rounding up to the next power of two must be.
  const std::uint32_t rounded = (magnitude - kBias + 0xfff + ((magnitude >> 13) & 1)) >> 13;
  // Subnormal halves are multiples of 2^-24, which is the unit in the last place of floats in [0.5, 1): the
  // addition rounds.
  const std::uint32_t subnormal = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5F) -
                                  std::bit_cast<std::uint32_t>(0.5F);
  std::uint32_t half = std::min(rounded, kHalfInfinity);
  half = magnitude < kSmallestNormal ? subnormal : half;
  half = magnitude > kInfinity ? kHalfNan : half;
  return half | ((bits >> 16) & 0x8000);
}

/// All ones or zeros: choices by masks leave no branches, which would keep the loops from being vectorized.
inline std::uint32_t mask(bool yes) {
  return 0U - static_cast<std::uint32_t>(yes);
}

inline float half_value(std::uint32_t half) {
  const std::uint32_t magnitude = half & 0x7fff;
  // The same trick backwards: a multiple of 2^-24 is the low part of a float in [0.5, 1).
  const float subnormal = std::bit_cast<float>(std::bit_cast<std::uint32_t>(0.5F) | magnitude) - 0.5F;
  const std::uint32_t is_subnormal = mask(magnitude < 0x400);
  const std::uint32_t special = mask(magnitude >= kHalfInfinity) & kInfinity;
  const std::uint32_t normal = ((magnitude << 13) + kBias) | special;
  const std::uint32_t bits =
      (std::bit_cast<std::uint32_t>(subnormal) & is_subnormal) | (normal & ~is_subnormal);
  return std::bit_cast<float>(bits | ((half & 0x8000) << 16));
}

void check(bool equal) {
  if (!equal) throw std::invalid_argument("halves: lengths differ");
}

}  // namespace

std::uint16_t to_half(float value) {
  return static_cast<std::uint16_t>(half_bits(value));
}

float from_half(std::uint16_t half) {
  return half_value(half);
}

void from_halves(std::span<const std::uint16_t> halves, std::span<float> values) {
  check(values.size() == halves.size());
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = half_value(halves[i]);
}

void to_halves_with_feedback(std::span<const float> gradient, std::span<float> owed,
                             std::span<std::uint16_t> sent) {
  check(gradient.size() == owed.size() && owed.size() == sent.size());
  for (std::size_t i = 0; i < owed.size(); ++i) {
    const float value = owed[i] + gradient[i];
    const std::uint32_t half = half_bits(value);
    sent[i] = static_cast<std::uint16_t>(half);
    owed[i] = value - half_value(half);
  }
}

}  // namespace stepcast
