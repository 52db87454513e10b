#include "strategies/compression_figures.hpp"

namespace stepcast {

Figures compression_figures(Bytes sent, CompressionSeconds seconds) {
  return {{"gradient_bytes", sent.value},
          {"quantize_seconds", seconds.quantize.value},
          {"restore_seconds", seconds.restore.value}};
}

Figures compression_figures(const GradientCompression& compression, const std::vector<Bucket>& buckets,
                            int workers) {
  const bool whole = compression.kind == Compression::none;
  Bytes sent;
  CompressionSeconds sum;
  for (const Bucket& bucket : buckets) {
    sent += whole ? bucket.gradient : wire_bytes(compression, bucket.elements.size());
    const auto one = compression_seconds(compression, bucket.elements.size(), workers);
    sum.quantize += one.quantize;
    sum.restore += one.restore;
  }
  return compression_figures(workers > 1 ? sent : Bytes{}, sum);
}

}  // namespace stepcast
