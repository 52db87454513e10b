#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/compression.hpp"
#include "strategies/plan.hpp"
#include "strategies/strategy.hpp"

namespace stepcast {

/// How gradients travel.
struct GradientCompression {
  Compression kind = Compression::none;
  double density = 0.01;  ///< top_k: share of the elements that is sent
  double factor = 1;      ///< on all times
  CompressionCost cost;   ///< of the workers' device, the factor included
  std::int64_t rows = 1;  ///< one_bit: elements of a column
  std::string flag;       ///< a doubt about the times

  Codec codec(int owners) const { return {kind, rows, density, owners}; }
};

/// Beside `compression`, which every strategy knows.
const std::vector<std::string>& compression_keys();
/// @throws InputError for a density without top_k, and for gradients that are of 2 bytes already
GradientCompression read_compression_options(const YamlMap& map, const Setting& setting);
/// Options of a compression that there is not.
void note_idle_compression(const YamlMap& map, IdleKeys& idle);
/// Of strategies that compress nothing. @throws InputError for any other `compression` than `none`
void refuse_compression(const YamlMap& map, const char* why);

/// Bytes on the wire of `elements` gradients that one worker sends.
Bytes wire_bytes(const GradientCompression& compression, std::int64_t elements);

/// The collective that sums them over `workers`. One bit and halves: an all-reduce of the compressed size, in
/// which every worker owns a share, sums it in full precision and sends it on compressed again. Top-k: an
/// all-gather of what everyone sends.
Collective compressed_sum(const GradientCompression& compression, const Slice& elements, int workers);

/// Time that one worker's device needs to quantize and to restore `elements`, in a sum over `workers`:
/// one_bit and fp16 quantize all and their own share of the sum again, and restore everyone's parts of that
/// share and all sums; top_k restores what all workers sent.
struct CompressionSeconds {
  Seconds quantize, restore;
};
CompressionSeconds compression_seconds(const GradientCompression& compression, std::int64_t elements,
                                       int workers);

/// The same of an update that one worker sends to a server: it quantizes all, and the server restores it
/// before it applies it; of top_k the server adds what is there.
/// @param server  cost on the server's processor
CompressionSeconds update_seconds(const GradientCompression& compression, const CompressionCost& server,
                                  double elements);

}  // namespace stepcast
