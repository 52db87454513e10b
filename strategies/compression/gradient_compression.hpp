#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "models/layer_times/compression_times.hpp"
#include "strategies/arithmetic/compressed_values.hpp"
#include "strategies/collectives/schedule.hpp"
#include "strategies/options/strategy.hpp"
#include "strategies/program/program.hpp"

namespace stepcast {

/// Options and cost of compressed gradients.
struct GradientCompression {
  Compression kind = Compression::none;
  double density = 0.01;  ///< top_k: share of the elements that is sent
  double factor = 1;      ///< multiplies all times
  CompressionCost cost;   ///< on a worker's device, with the factor
  std::int64_t rows = 1;  ///< one_bit: elements of a column
  bool feedback = true;   ///< error feedback; without it, quantization errors are dropped
  std::string flag;       ///< doubt about the times; empty: none

  Codec codec(int owners) const { return {kind, rows, density, owners, feedback}; }
};

/// Keys of strategies that compress, in addition to `compression`, which every strategy accepts.
const Keys& compression_keys();
/// @throws InputError for a density without top_k, and for gradients that have 2 bytes already
GradientCompression read_compression_options(const YamlMap& map, const Setting& setting);
/// Notes options of compression that have no effect with `compression: none`.
void note_ineffective_compression(const YamlMap& map, IneffectiveKeys& found);
/// For strategies that do not compress. @throws InputError for any `compression` but `none`
/// @param why  text of the error
void refuse_compression(const YamlMap& map, const char* why);

/// Bytes on the wire of `elements` gradients that one worker sends.
Bytes wire_bytes(const GradientCompression& compression, std::int64_t elements);

/// The collective that sums compressed gradients over `workers`. one_bit and fp16: an all-reduce of the
/// compressed size, in which every worker owns a share, sums it in full precision and sends the sum,
/// compressed again. top_k: an all-gather of the elements of all workers.
Collective compressed_sum(const GradientCompression& compression, const Slice& elements, int workers);

/// Time of one worker's device to quantize and to restore `elements` in a sum over `workers`. one_bit and
/// fp16: a worker quantizes all elements and its share of the sum, and restores all workers' parts of that
/// share and all sums. top_k: a worker restores the elements of all workers.
struct CompressionSeconds {
  Seconds quantize, restore;
};
CompressionSeconds compression_seconds(const GradientCompression& compression, std::int64_t elements,
                                       int workers);

/// Time of a worker to quantize an update for a server, and of the server to restore it before it applies it.
/// top_k: the server restores only the elements that were sent.
/// @param server  cost on the server's processor
CompressionSeconds update_seconds(const GradientCompression& compression, const CompressionCost& server,
                                  double elements);

/// Columns of compressed gradients: gradient_bytes (that a worker sends), quantize_seconds, restore_seconds.
Figures compression_figures(Bytes sent, CompressionSeconds seconds);

/// Columns of compressed gradients that all workers sum, bucket by bucket, once per step.
Figures compression_figures(const GradientCompression& compression, const std::vector<Bucket>& buckets,
                            int workers);

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

  /// Sets the elements that are padding in memory, ascending. They are restored as 0, which one bit cannot
  /// express, and take no part in the means of one_bit.
  void set_padding(std::vector<std::int64_t> padding) { padding_ = std::move(padding); }

  const WireLayout& layout() const { return layout_; }
  std::span<float> wire() { return wire_; }
  std::span<const float> residual() const { return residual_; }
  std::span<const float> residual_of_sum() const {
    return residual_of_sum_;
  }  ///< error of the sum of the own share

 private:
  std::span<const std::size_t> padding_in(const Slice& elements);
  void quantize_block(const Slice& elements, std::span<const float> values, std::span<float> residual,
                      float* words);
  void restore_block(const float* words, std::span<float> values);
  void quantize_share(int owner, std::span<const float> gradient);

  Codec codec_;
  WireLayout layout_;
  int place_;
  std::vector<float> wire_, residual_, residual_of_sum_, sum_, part_;
  std::vector<std::uint32_t> candidates_;
  std::vector<std::uint16_t> halves_;
  OneBitGradient bits_;
  SparseGradient sparse_;
  std::vector<std::int64_t> padding_;
  std::vector<std::size_t> padding_of_block_;
};

}  // namespace stepcast
