#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/layer_times/compression_times.hpp"
#include "strategies/options/strategy.hpp"

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

/// Keys of strategies that compress, beside `compression`, which every strategy accepts.
const Keys& compression_keys();
/// @throws InputError for a density without top_k, and for gradients that have 2 bytes already
GradientCompression read_compression_options(const YamlMap& map, const Setting& setting);
/// Notes options of compression that have no effect with `compression: none`.
void note_idle_compression(const YamlMap& map, IdleKeys& idle);
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

/// Columns of compressed gradients that all workers sum, bucket by bucket, once a step.
Figures compression_figures(const GradientCompression& compression, const std::vector<Bucket>& buckets,
                            int workers);

}  // namespace stepcast
