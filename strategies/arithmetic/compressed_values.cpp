#include "strategies/arithmetic/compressed_values.hpp"

#include <algorithm>
#include <array>
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
  // into the exponent is the wanted rounding up to the next power of two.
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
  return 0U - std::uint32_t{yes};
}

inline float half_value(std::uint32_t half) {
  const std::uint32_t magnitude = half & 0x7fff;
  // The inverse of the trick above: a multiple of 2^-24 is the low part of a float in [0.5, 1).
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
  return half_bits(value);
}

float from_half(std::uint16_t half) {
  return half_value(half);
}

void from_halves(std::span<const std::uint16_t> halves, std::span<float> values) {
  check(values.size() == halves.size());
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = half_value(halves[i]);
}

void to_halves_with_feedback(std::span<const float> gradient, std::span<float> residual,
                             std::span<std::uint16_t> sent) {
  check(gradient.size() == residual.size() && residual.size() == sent.size());
  for (std::size_t i = 0; i < residual.size(); ++i) {
    const float value = residual[i] + gradient[i];
    const std::uint32_t half = half_bits(value);
    sent[i] = half;
    residual[i] = value - half_value(half);
  }
}

namespace {

constexpr std::size_t kBits = 32;
constexpr std::size_t kLanes =
    16;  // sums side by side, so that a compiler may use vectors without reordering

std::size_t words(std::size_t rows) {
  return (rows + kBits - 1) / kBits;
}

constexpr std::array<std::uint32_t, kBits> bit_masks() {
  std::array<std::uint32_t, kBits> masks{};
  for (std::size_t i = 0; i < kBits; ++i) masks[i] = 1U << i;
  return masks;
}
constexpr auto kMask = bit_masks();

struct Means {
  float below = 0, above = 0;
};

/// All ones for a negative number (-0 too), else zeros: choices by masks leave no branches.
inline std::uint32_t negative_mask(float value) {
  return std::bit_cast<std::int32_t>(value) >> 31;
}

inline float chosen(std::uint32_t negative, const Means& means) {
  return std::bit_cast<float>((std::bit_cast<std::uint32_t>(means.below) & negative) |
                              (std::bit_cast<std::uint32_t>(means.above) & ~negative));
}

/// Partial sums: lane i holds those of elements i, i + 16, ...
struct Sums {
  std::array<float, kLanes> below{}, above{};
  std::array<std::int32_t, kLanes> negative{};  ///< minus the number of negative elements
};

inline void add(const float* gradient, float* residual, std::size_t lanes, Sums& sums) {
  for (std::size_t lane = 0; lane < lanes; ++lane) {
    const float value = residual[lane] + gradient[lane];
    const std::uint32_t negative = negative_mask(value), bits = std::bit_cast<std::uint32_t>(value);
    residual[lane] = value;
    sums.below[lane] += std::bit_cast<float>(bits & negative);
    sums.above[lane] += std::bit_cast<float>(bits & ~negative);
    sums.negative[lane] += negative;
  }
}

/// @param length  of the column without padding
Means means_of(const Sums& sums, std::size_t length) {
  double below = 0, above = 0, negative = 0;
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    below += sums.below[lane];
    above += sums.above[lane];
    negative -= sums.negative[lane];
  }
  const double others = length - negative;
  return {static_cast<float>(negative > 0 ? below / negative : 0),
          static_cast<float>(others > 0 ? above / others : 0)};
}

/// Adds the gradient to the error. @returns the means of the elements below 0 and of the others
/// @param padding  number of elements that do not count; they are 0
Means add_and_average(std::span<const float> gradient, std::span<float> residual, std::size_t padding) {
  const float* from = gradient.data();
  float* to = residual.data();
  Sums sums;
  const std::size_t whole = gradient.size() / kLanes * kLanes;
  for (std::size_t i = 0; i < whole; i += kLanes) add(from + i, to + i, kLanes, sums);
  add(from + whole, to + whole, gradient.size() - whole, sums);
  return means_of(sums, gradient.size() - padding);
}

/// Packs up to 32 signs into a word; `residual` keeps the error.
inline std::uint32_t take_signs(float* residual, std::size_t count, const Means& means) {
  std::uint32_t word = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t negative = negative_mask(residual[i]);
    word |= kMask[i] & ~negative;
    residual[i] -= chosen(negative, means);
  }
  return word;
}

void give_signs(std::uint32_t word, const Means& means, std::span<float> values) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = (word & kMask[i]) != 0 ? means.above : means.below;
  }
}

}  // namespace

void quantize_one_bit(std::span<const float> gradient, std::size_t rows, std::span<float> residual,
                      OneBitGradient& sent, std::span<const std::size_t> padding) {
  if (gradient.size() != residual.size()) throw std::invalid_argument("quantize_one_bit: lengths differ");
  if (rows == 0) throw std::invalid_argument("quantize_one_bit: rows must be >= 1");
  sent.rows = rows;
  sent.signs.clear();
  sent.below.clear();
  sent.above.clear();
  for (std::size_t first = 0; first < gradient.size(); first += rows) {
    const std::size_t length = std::min(rows, gradient.size() - first);
    const auto column = residual.subspan(first, length);
    const auto own = std::ranges::lower_bound(padding, first + length);
    const auto of_column = padding.first(own - padding.begin());
    padding = padding.subspan(of_column.size());
    const Means means = add_and_average(gradient.subspan(first, length), column, of_column.size());
    sent.below.push_back(means.below);
    sent.above.push_back(means.above);
    const std::size_t whole = length / kBits * kBits;
    for (std::size_t i = 0; i < whole; i += kBits) {
      sent.signs.push_back(take_signs(column.data() + i, kBits, means));
    }
    if (whole < length) sent.signs.push_back(take_signs(column.data() + whole, length - whole, means));
    for (const std::size_t element : of_column) residual[element] = 0;
  }
}

void restore_one_bit(const OneBitGradient& sent, std::span<float> gradient) {
  const std::size_t columns = (gradient.size() + sent.rows - 1) / sent.rows;
  if (columns != sent.below.size()) throw std::invalid_argument("restore_one_bit: lengths differ");
  std::size_t word = 0;
  for (std::size_t column = 0; column < columns; ++column) {
    const std::size_t first = column * sent.rows, length = std::min(sent.rows, gradient.size() - first);
    const Means means{sent.below[column], sent.above[column]};
    if (word + words(length) > sent.signs.size())
      throw std::invalid_argument("restore_one_bit: lengths differ");
    for (std::size_t i = 0; i < length; i += kBits) {
      give_signs(sent.signs[word++], means, gradient.subspan(first + i, std::min(kBits, length - i)));
    }
  }
  if (word != sent.signs.size()) throw std::invalid_argument("restore_one_bit: lengths differ");
}

Bytes one_bit_bytes(std::size_t elements, std::size_t rows) {
  const std::size_t columns = elements / rows, rest = elements % rows;
  const std::size_t all_words = columns * words(rows) + words(rest);
  return {4.0 * all_words + 8.0 * (columns + (rest > 0 ? 1 : 0))};
}

namespace {

// Magnitudes have the order of their bits. The highest 11 bits select a bin; histograms side by side keep
// equal bins in a row from waiting for each other.
constexpr int kLowBits = 20;
constexpr std::size_t kBins = 1 << 11, kHistograms = 4;

inline std::uint32_t magnitude_bits(float value) {
  return std::bit_cast<std::uint32_t>(value) & 0x7fffffff;
}

std::array<std::uint32_t, kBins> histogram_of(std::span<const float> values) {
  std::array<std::array<std::uint32_t, kBins>, kHistograms> all{};
  std::size_t i = 0;
  for (; i + kHistograms <= values.size(); i += kHistograms)
    for (std::size_t j = 0; j < kHistograms; ++j) ++all[j][magnitude_bits(values[i + j]) >> kLowBits];
  for (; i < values.size(); ++i) ++all[0][magnitude_bits(values[i]) >> kLowBits];
  for (std::size_t bin = 0; bin < kBins; ++bin)
    for (std::size_t j = 1; j < kHistograms; ++j) all[0][bin] += all[j][bin];
  return all[0];
}

struct Threshold {
  std::uint32_t magnitude = 0;
  std::size_t equal = 0;  ///< number of elements of exactly this magnitude that are sent
};

/// Sorts only the bin that holds the threshold: the time of a partial sort of all depends on their order, on
/// some gradients by a factor of two.
Threshold find_threshold(std::span<const float> values, std::size_t count,
                         std::vector<std::uint32_t>& candidates) {
  const auto histogram = histogram_of(values);
  std::size_t bin = kBins - 1;
  for (; histogram[bin] < count; --bin) count -= histogram[bin];
  candidates.resize(values.size());
  std::size_t size = 0;
  for (const float value : values) {
    candidates[size] = magnitude_bits(value);
    size += candidates[size] >> kLowBits == bin ? 1 : 0;
  }
  const auto begin = candidates.begin(), last = begin + count - 1;
  std::nth_element(begin, last, begin + size, std::greater<>());
  const auto greater = std::count_if(begin, last, [&](std::uint32_t m) { return m > *last; });
  return {*last, count - greater};
}

}  // namespace

void select_top_k(std::span<const float> gradient, std::size_t count, std::span<float> residual,
                  std::vector<std::uint32_t>& candidates, SparseGradient& sent) {
  if (gradient.size() != residual.size()) throw std::invalid_argument("select_top_k: lengths differ");
  if (count == 0 || count > gradient.size()) throw std::invalid_argument("select_top_k: count out of range");
  for (std::size_t i = 0; i < residual.size(); ++i) residual[i] += gradient[i];
  Threshold threshold = find_threshold(residual, count, candidates);
  sent.indices.clear();
  sent.values.clear();
  for (std::size_t i = 0; i < residual.size(); ++i) {
    const std::uint32_t magnitude = magnitude_bits(residual[i]);
    if (magnitude < threshold.magnitude) continue;
    if (magnitude == threshold.magnitude) {
      if (threshold.equal == 0) continue;
      --threshold.equal;
    }
    sent.indices.push_back(i);
    sent.values.push_back(residual[i]);
    residual[i] = 0;
  }
}

void restore_top_k(const SparseGradient& sent, std::span<float> gradient) {
  std::fill(gradient.begin(), gradient.end(), 0.0F);
  for (std::size_t i = 0; i < sent.indices.size(); ++i) {
    if (sent.indices[i] >= gradient.size()) throw std::invalid_argument("restore_top_k: index out of range");
    gradient[sent.indices[i]] = sent.values[i];
  }
}

Bytes top_k_bytes(std::size_t count) {
  return {8.0 * count};
}

}  // namespace stepcast
