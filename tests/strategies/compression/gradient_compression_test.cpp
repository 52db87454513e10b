#include "strategies/compression/gradient_compression.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <vector>

using namespace stepcast;

namespace {

GradientCompression with(Compression kind) {
  GradientCompression compression;
  compression.kind = kind;
  compression.rows = 2048;
  compression.density = 0.01;
  compression.cost = {1e-9, 1e-10};
  return compression;
}

constexpr std::int64_t kElements = 2048 * 1000;

}  // namespace

TEST_CASE("compressed gradients are 1/2, about 1/32, and twice the density of their size", "[strategies]") {
  CHECK(wire_bytes(with(Compression::none), kElements).value == 4.0 * kElements);
  CHECK(wire_bytes(with(Compression::fp16), kElements).value == 2.0 * kElements);
  CHECK(wire_bytes(with(Compression::one_bit), kElements).value == kElements / 8.0 + 8 * 1000);
  CHECK(wire_bytes(with(Compression::top_k), kElements).value == 8 * 0.01 * kElements);
}

TEST_CASE("top-k is summed by an all-gather of everyone's elements", "[strategies]") {
  const Collective sum = compressed_sum(with(Compression::top_k), {0, kElements}, 16);
  CHECK(sum.kind == Collective::Kind::all_gather);
  CHECK(sum.buffer.size.value == 16 * 8 * 0.01 * kElements);
  CHECK(compressed_sum(with(Compression::one_bit), {0, kElements}, 16).kind == Collective::Kind::all_reduce);
}

TEST_CASE("one bit and halves quantize a share twice, and restore its parts and all sums", "[strategies]") {
  const double bytes = 4.0 * kElements;
  for (const auto kind : {Compression::one_bit, Compression::fp16}) {
    const CompressionSeconds one = compression_seconds(with(kind), kElements, 8);
    CHECK(one.quantize.value == Approx(bytes * 1e-9 * 9 / 8));
    CHECK(one.restore.value == Approx(bytes * 1e-10 * 2));
  }
}

TEST_CASE("one worker compresses nothing", "[strategies]") {
  CHECK(compression_seconds(with(Compression::one_bit), kElements, 1).quantize.value == 0);
}

TEST_CASE("figures of compression sum what every bucket sends, and its times", "[strategies]") {
  std::vector<Bucket> buckets(2);
  buckets[0].elements = {0, kElements};
  buckets[1].elements = {kElements, 2 * kElements};
  for (Bucket& bucket : buckets) bucket.gradient = {4.0 * kElements};
  const Figures bits = compression_figures(with(Compression::one_bit), buckets, 4);
  CHECK(bits[0] == std::pair<std::string, double>{"gradient_bytes", 2 * (kElements / 8.0 + 8 * 1000)});
  CHECK(bits[1].second == Approx(2 * 4.0 * kElements * 1.25 * 1e-9));
  CHECK(bits[2].second == Approx(2 * 4.0 * kElements * 2 * 1e-10));
  const Figures whole = compression_figures(with(Compression::none), buckets, 4);
  CHECK(whole[0].second == 8.0 * kElements);
  CHECK(whole[1].second + whole[2].second == 0);
  CHECK(compression_figures(with(Compression::one_bit), buckets, 1)[0].second == 0);  // nobody to send to
}

TEST_CASE("errors of quantization are added to the next gradient, unless error feedback is off",
          "[strategies]") {
  const std::vector<float> gradient{1, 2, 3, -1, -2, -6, 4, 0.5F};
  const auto error_after = [&](bool feedback, int steps) {
    Codec codec = with(Compression::one_bit).codec(1);
    codec.rows = gradient.size();
    codec.feedback = feedback;
    CompressedGradient compressed(codec, codec.rows, 0);
    std::vector<float> sum(gradient.size()), sent(gradient.size());
    for (int step = 0; step < steps; ++step) {
      compressed.quantize(gradient);
      compressed.sum_share();
      compressed.restore(sent);
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += sent[i];
    }
    double error = 0;
    for (std::size_t i = 0; i < sum.size(); ++i) error += std::abs(sum[i] - steps * gradient[i]);
    return error / steps;
  };
  const double once = error_after(false, 1);
  CHECK(once > 1);
  CHECK(error_after(true, 1) == once);
  CHECK(error_after(false, 100) == Approx(once));  // every step errs alike
  CHECK(error_after(true, 100) < 0.2 * once);      // errors stay bounded, so their mean vanishes
}

TEST_CASE("padding of the memory's layout changes nothing of a compressed gradient", "[strategies]") {
  const bool feedback = GENERATE(true, false);
  const auto compressed_in = [&](std::int64_t rows, std::int64_t elements) {
    Codec codec = with(Compression::one_bit).codec(1);
    codec.rows = rows;
    codec.feedback = feedback;
    return CompressedGradient(codec, elements, 0);
  };
  const auto restored = [](CompressedGradient& compressed, const std::vector<float>& gradient) {
    std::vector<float> values(gradient.size());
    compressed.quantize(gradient);
    compressed.sum_share();
    compressed.restore(values);
    return values;
  };
  // Two columns with the same parameters; in the memory of `padded`, zeros stand between them.
  CompressedGradient plain = compressed_in(4, 8), padded = compressed_in(8, 16);
  padded.set_padding({2, 3, 6, 7, 10, 11, 14, 15});
  for (int step = 0; step < 5; ++step) {
    const auto of_plain = restored(plain, {1, 2, 3, -1, -2, -6, 4, 0.5F});
    const auto of_padded = restored(padded, {1, 2, 0, 0, 3, -1, 0, 0, -2, -6, 0, 0, 4, 0.5F, 0, 0});
    for (std::size_t i = 0; i < of_padded.size(); ++i) {
      const bool is_padding = i % 4 >= 2;
      const float expected = is_padding ? 0 : of_plain[i / 4 * 2 + i % 4];
      CHECK(of_padded[i] == Approx(expected).margin(1e-6));
    }
  }
}
