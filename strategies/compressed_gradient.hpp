#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "strategies/arithmetic/one_bit.hpp"
#include "strategies/arithmetic/top_k.hpp"
#include "strategies/codec.hpp"
#include "strategies/collectives/schedule.hpp"

namespace stepcast {

/// Where what travels lies, in words of 4 bytes. One bit and halves: the shares one after the other, each
/// with its owner's sum in the end, then what other workers sent for the own share. Top-k: what each sends.
class WireLayout {
 public:
  WireLayout(const Codec& codec, std::int64_t elements);

  Slice elements(int owner) const;           ///< of the gradient that it sums
  Slice share(int owner) const;              ///< its words
  Slice arrived(int from, int owner) const;  ///< words that `from` sent for the owner's share
  std::int64_t words() const;

  std::int64_t block() const { return block_; }  ///< elements that are compressed together
  std::int64_t words_of(std::int64_t elements) const;

 private:
  Codec codec_;
  std::int64_t elements_, block_;
};

/// A worker's gradient as it travels compressed, and what it owes: what was left out is added to the next
/// one, so that sent + owed keep the sum.
///
/// Source of the exchange: F. Seide, H. Fu, J. Droppo, G. Li, D. Yu, Interspeech 2014: everyone sends each
/// owner its share compressed; the owner sums, and compresses the sum for all, with an error feedback of its
/// own.
class CompressedGradient {
 public:
  /// @param place  of this worker among the owners
  CompressedGradient(const Codec& codec, std::int64_t elements, int place);

  void quantize(std::span<const float> gradient);
  void sum_share();  ///< when all have sent; top_k: nothing to do
  void restore(std::span<float> gradient);

  /// Elements that only fill up memory: restored as 0, which one bit cannot say.
  void set_padding(std::vector<std::int64_t> padding) { padding_ = std::move(padding); }

  const WireLayout& layout() const { return layout_; }
  std::span<float> wire() { return wire_; }
  std::span<const float> owed() const { return owed_; }
  std::span<const float> owed_of_sum() const { return owed_of_sum_; }  ///< of the own share

 private:
  void quantize_block(std::span<const float> values, std::span<float> owed, float* words);
  void restore_block(const float* words, std::span<float> values);
  void quantize_share(int owner, std::span<const float> gradient);

  Codec codec_;
  WireLayout layout_;
  int place_;
  std::vector<float> wire_, owed_, owed_of_sum_, sum_, part_, scratch_;
  std::vector<std::uint16_t> halves_;
  OneBitGradient bits_;
  SparseGradient sparse_;
  std::vector<std::int64_t> padding_;
};

}  // namespace stepcast
