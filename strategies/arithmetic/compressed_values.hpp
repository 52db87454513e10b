#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/typed_numbers.hpp"

namespace stepcast {

/// IEEE 754 binary16 of a number, rounded to nearest, ties to even. Numbers from 65,520 on become infinity; a
/// NaN stays a NaN.
std::uint16_t to_half(float value);
float from_half(std::uint16_t half);  ///< exact

/// Converts each element. The loop has no branches, so that the compiler vectorizes it.
/// @throws std::invalid_argument if lengths differ
void from_halves(std::span<const std::uint16_t> halves, std::span<float> values);

/// Rounds with error feedback: residual += gradient; sent = residual, rounded; residual -= sent.
/// @throws std::invalid_argument if lengths differ
void to_halves_with_feedback(std::span<const float> gradient, std::span<float> residual,
                             std::span<std::uint16_t> sent);

/// A gradient as one bit for each element and two numbers for each column.
struct OneBitGradient {
  std::size_t rows = 1;  ///< elements of a column; the last column may be shorter
  std::vector<std::uint32_t>
      signs;  ///< bit i of a column's words is 1 if element i is not negative; a column starts a word
  std::vector<float> below, above;  ///< values of a bit 0 and a bit 1 in each column
};

/// 1-bit SGD with error feedback: adds the error of the last gradient, reduces every element to its sign, and
/// keeps the new error.
///
/// With v = gradient + residual, `above` is the mean of the v >= 0 of a column and `below` the mean of its v
/// < 0: the values with the least squared error for the threshold 0. Then residual = v - sent value, so that
/// sent + residual keep the sum over time. The result of a column with a v that is not finite is undefined.
///
/// @param gradient  columns one after the other, `rows` elements each
/// @param residual      error; of the gradient's length; zeros before the first call
/// @param padding  ascending indices of elements that are no parameters; their gradient is 0, and they take
///                 no part in the means
/// @throws std::invalid_argument if lengths differ or rows is 0
/// Source: F. Seide, H. Fu, J. Droppo, G. Li, D. Yu, "1-bit stochastic gradient descent and its application
/// to data-parallel distributed training of speech DNNs", Interspeech 2014.
void quantize_one_bit(std::span<const float> gradient, std::size_t rows, std::span<float> residual,
                      OneBitGradient& sent, std::span<const std::size_t> padding = {});

/// Restores a gradient.
/// @throws std::invalid_argument if `gradient` has another length than the sent gradient
void restore_one_bit(const OneBitGradient& sent, std::span<float> gradient);

/// Size of the message: a word for every 32 elements of a column, and two floats for each column.
Bytes one_bit_bytes(std::size_t elements, std::size_t rows);

/// The elements of a gradient that are sent: index and value, indices ascending.
struct SparseGradient {
  std::vector<std::uint32_t> indices;
  std::vector<float> values;
};

/// Top-k with error feedback: of v = gradient + residual, the `count` elements of largest magnitude are sent
/// (of equal elements, those with the lowest index). Then residual = v without them.
///
/// @param candidates  memory for the search, which the caller keeps from call to call
/// @throws std::invalid_argument if lengths differ, or count is 0 or above the length
/// Source: A. Aji, K. Heafield, "Sparse communication for distributed gradient descent", EMNLP 2017
/// (residual). Here the threshold is the exact k-th magnitude, not a sampled one.
void select_top_k(std::span<const float> gradient, std::size_t count, std::span<float> residual,
                  std::vector<std::uint32_t>& candidates, SparseGradient& sent);

/// Writes the sent elements, and zeros elsewhere.
/// @throws std::invalid_argument if an index is outside of `gradient`
void restore_top_k(const SparseGradient& sent, std::span<float> gradient);

/// Size of the message: a 4-byte index and a 4-byte value for each element.
Bytes top_k_bytes(std::size_t count);

}  // namespace stepcast
