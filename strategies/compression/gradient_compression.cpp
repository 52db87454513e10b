#include "strategies/compression/gradient_compression.hpp"

#include <cmath>

#include "strategies/arithmetic/compressed_values.hpp"

namespace stepcast {

const Keys& compression_keys() {
  static const Keys keys{
      {"density", "number", "1e-9 to 1", "0.01", "compression: top_k: share of the elements that is sent"},
      {"error_feedback", "boolean", "", "true",
       "the quantization error of a gradient is added to the next one; false: it is dropped"},
      {"compression_factor", "number", "0 to 1e6", "1", "multiplies the times to quantize and to restore"}};
  return keys;
}

GradientCompression read_compression_options(const YamlMap& map, const Setting& setting) {
  GradientCompression compression;
  if (const auto kind = map.maybe("compression"))
    compression.kind = static_cast<Compression>(kind->one_of(compression_names()));
  if (const auto density = map.maybe("density")) {
    compression.density = density->number(1e-9, 1);
    if (compression.kind != Compression::top_k) density->refuse("only valid with compression: top_k");
  }
  if (const auto value = map.maybe("error_feedback")) {
    compression.feedback = value->boolean();
    if (compression.kind == Compression::none) value->refuse("only valid with compression");
  }
  if (const auto value = map.maybe("compression_factor")) {
    compression.factor = value->number(0, 1e6);
    if (!map.has("compression")) value->refuse("only valid with compression");
  }
  if (compression.kind == Compression::none) return compression;
  if (const auto precision = map.maybe("precision"); precision && precision->text() == "mixed")
    map.at("compression").refuse("not supported with precision: mixed; set precision: f32");
  if (!setting.compression) return compression;
  const CompressionTimes times = setting.compression(compression.kind);
  compression.cost = {compression.factor * times.cost.quantize, compression.factor * times.cost.restore};
  compression.rows = times.rows;
  compression.flag = times.flag;
  return compression;
}

void note_idle_compression(const YamlMap& map, IdleKeys& idle) {
  const auto kind = map.maybe("compression");
  if (!kind || kind->one_of(compression_names()) == 0)
    note_idle(map, {"compression_factor"}, "with compression: none", idle);
}

void refuse_compression(const YamlMap& map, const char* why) {
  const auto kind = map.maybe("compression");
  if (kind && kind->one_of(compression_names()) != 0) kind->refuse(why);
}

Bytes wire_bytes(const GradientCompression& compression, std::int64_t elements) {
  const auto count = static_cast<std::size_t>(elements);
  switch (compression.kind) {
    case Compression::none:
      return {4.0 * static_cast<double>(elements)};
    case Compression::one_bit:
      return one_bit_bytes(count, static_cast<std::size_t>(compression.rows));
    case Compression::fp16:
      return {2.0 * static_cast<double>(elements)};
    case Compression::top_k:
      return top_k_bytes(
          static_cast<std::size_t>(std::ceil(compression.density * static_cast<double>(elements))));
  }
  return {};
}

Collective compressed_sum(const GradientCompression& compression, const Slice& elements, int workers) {
  const Bytes sent = wire_bytes(compression, elements.size());
  const Codec codec = compression.codec(workers);
  const CommunicatorId workers_of_plan{0};
  if (compression.kind == Compression::top_k)
    return {Collective::Kind::all_gather,
            workers_of_plan,
            {Array::gradients, elements, workers * sent, codec},
            nullptr};
  return {Collective::Kind::all_reduce, workers_of_plan, {Array::gradients, elements, sent, codec}, nullptr};
}

CompressionSeconds compression_seconds(const GradientCompression& compression, std::int64_t elements,
                                       int workers) {
  if (compression.kind == Compression::none || workers == 1) return {};
  const double bytes = 4.0 * static_cast<double>(elements), count = workers;
  double quantize = bytes * (1 + 1 / count), restore = 2 * bytes;
  if (compression.kind == Compression::top_k) {
    quantize = bytes;
    restore = bytes * (1 + count * compression.density);
  }
  return {{quantize * compression.cost.quantize}, {restore * compression.cost.restore}};
}

CompressionSeconds update_seconds(const GradientCompression& compression, const CompressionCost& server,
                                  double elements) {
  if (compression.kind == Compression::none) return {};
  const double bytes = 4 * elements;
  const double restored = compression.kind == Compression::top_k ? compression.density * bytes : bytes;
  return {{bytes * compression.cost.quantize}, {compression.factor * restored * server.restore}};
}

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
