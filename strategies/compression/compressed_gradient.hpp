#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "strategies/arithmetic/compressed_values.hpp"
#include "strategies/collectives/schedule.hpp"
#include "strategies/program/program.hpp"

namespace stepcast {

/// Layout of a compressed gradient in its message buffer, in words of 4 bytes.
///
/// - one_bit and fp16: first the shares of all owners, in order of rank; the sum of a share replaces the
/// share.
///   Then the words that each other worker sends for this worker's own share.
/// - top_k: the chosen elements of all workers, in order of rank.
class WireLayout {
 public:
  WireLayout(const Codec& codec, std::int64_t elements);

  Slice elements(int owner) const;           ///< elements of the gradient that an owner sums
  Slice share(int owner) const;              ///< words of an owner's share
  Slice arrived(int from, int owner) const;  ///< words that `from` sends for the owner's share
  std::int64_t words() const;

  std::int64_t block() const { return block_; }  ///< number of elements that are compressed together
  std::int64_t words_of(std::int64_t elements) const;

 private:
  Codec codec_;
  std::int64_t elements_, block_;
};

/// A worker's compressed gradient with error feedback: the quantization error is added to the next gradient,
/// so that sent + error stays the sum of all gradients.
///
/// Every worker sends each owner its share, compressed. The owner sums the share, and sends all workers the
/// compressed sum, with an error feedback of its own. Source: F. Seide, H. Fu, J. Droppo, G. Li, D. Yu,
/// Interspeech 2014.
class CompressedGradient {
 public:
  /// @param place  index of this worker among the owners
  CompressedGradient(const Codec& codec, std::int64_t elements, int place);

  void quantize(std::span<const float> gradient);
  void sum_share();  ///< after all workers have sent; top_k: does nothing
  void restore(std::span<float> gradient);

  /// Sets the elements that are padding in memory. They are restored as 0, which one bit cannot express.
  void set_padding(std::vector<std::int64_t> padding) { padding_ = std::move(padding); }

  const WireLayout& layout() const { return layout_; }
  std::span<float> wire() { return wire_; }
  std::span<const float> residual() const { return residual_; }
  std::span<const float> residual_of_sum() const {
    return residual_of_sum_;
  }  ///< error of the sum of the own share

 private:
  void quantize_block(std::span<const float> values, std::span<float> residual, float* words);
  void restore_block(const float* words, std::span<float> values);
  void quantize_share(int owner, std::span<const float> gradient);

  Codec codec_;
  WireLayout layout_;
  int place_;
  std::vector<float> wire_, residual_, residual_of_sum_, sum_, part_, scratch_;
  std::vector<std::uint16_t> halves_;
  OneBitGradient bits_;
  SparseGradient sparse_;
  std::vector<std::int64_t> padding_;
};

}  // namespace stepcast
