#include <algorithm>
#include <catch2/catch.hpp>
#include <functional>
#include <limits>
#include <numeric>

#include "arithmetic/arrays.hpp"
#include "strategies/arithmetic/compressed_values.hpp"

using namespace stepcast;
using test::random_floats;

namespace {

/// A finite half's value by the definition of the format.
double value_of(std::uint32_t half) {
  const double sign = (half & 0x8000) != 0 ? -1 : 1;
  const int exponent = half >> 10 & 0x1f;
  const double mantissa = half & 0x3ff;
  return exponent == 0 ? sign * std::ldexp(mantissa, -24) : sign * std::ldexp(1024 + mantissa, exponent - 25);
}

bool is_nan(std::uint32_t half) {
  return (half & 0x7fff) > 0x7c00;
}

}  // namespace

TEST_CASE("every half survives the way to a float and back", "[strategies][arithmetic]") {
  for (std::uint32_t half = 0; half < 0x10000; ++half) {
    const float value = from_half(half);
    if (is_nan(half)) {
      REQUIRE(std::isnan(value));
      REQUIRE(is_nan(to_half(value)));
      continue;
    }
    if ((half & 0x7fff) < 0x7c00) REQUIRE(double{value} == value_of(half));
    REQUIRE(to_half(value) == half);
  }
}

TEST_CASE("floats between two halves round to the nearer, ties to the even", "[strategies][arithmetic]") {
  for (std::uint32_t half = 0; half < 0x7bff; ++half) {  // up to the last finite one
    const double low = value_of(half), high = value_of(half + 1), middle = (low + high) / 2;
    const float tie = middle;
    REQUIRE(double{tie} == middle);
    REQUIRE(to_half(tie) == ((half & 1) == 0 ? half : half + 1));
    REQUIRE(to_half(std::nextafter(tie, 0.0F)) == half);
    REQUIRE(to_half(std::nextafter(tie, 1e9F)) == half + 1);
    REQUIRE(to_half(-tie) == (0x8000 | to_half(tie)));
  }
}

TEST_CASE("halves end at 65504: from 65520 on it is infinity", "[strategies][arithmetic]") {
  CHECK(to_half(65504) == 0x7bff);
  CHECK(to_half(std::nextafter(65520.0F, 0.0F)) == 0x7bff);
  CHECK(to_half(65520) == 0x7c00);
  CHECK(to_half(1e30F) == 0x7c00);
  CHECK(to_half(-std::numeric_limits<float>::infinity()) == 0xfc00);
  CHECK(to_half(1e-30F) == 0);
  CHECK(to_half(-0.0F) == 0x8000);
}

TEST_CASE("error feedback in halves keeps the sum of sent and residual", "[strategies][arithmetic]") {
  std::vector<float> residual(67);
  std::vector<double> total(67), arrived(67);
  std::vector<std::uint16_t> sent(67);
  for (std::uint32_t step = 0; step < 20; ++step) {
    const std::vector<float> gradient = random_floats(67, step);
    to_halves_with_feedback(gradient, residual, sent);
    for (std::size_t i = 0; i < residual.size(); ++i) {
      total[i] += gradient[i];
      arrived[i] += from_half(sent[i]);
      CHECK(arrived[i] + residual[i] == Approx(total[i]).margin(2e-6));
      CHECK(std::abs(residual[i]) <= 0x1p-11 * 1.001);  // half a unit of a half in [1, 2)
    }
  }
}

TEST_CASE("one bit stands for the mean of a column's elements of that sign", "[strategies][arithmetic]") {
  const std::size_t rows = GENERATE(1, 7, 32, 50, 200);
  const std::vector<float> gradient = random_floats(101, 3);
  std::vector<float> residual(101), restored(101);
  OneBitGradient sent;
  quantize_one_bit(gradient, rows, residual, sent);
  restore_one_bit(sent, restored);
  for (std::size_t first = 0; first < gradient.size(); first += rows) {
    const std::size_t last = std::min(first + rows, gradient.size());
    double sum[2] = {}, count[2] = {};
    for (std::size_t i = first; i < last; ++i) {
      sum[gradient[i] >= 0] += gradient[i];
      count[gradient[i] >= 0] += 1;
    }
    for (std::size_t i = first; i < last; ++i) {
      const bool up = gradient[i] >= 0;
      CHECK(restored[i] == Approx(sum[up] / count[up]).margin(1e-6));
    }
  }
}

TEST_CASE("what one-bit compression sends and its residual add up to the gradient",
          "[strategies][arithmetic]") {
  const std::size_t rows = GENERATE(16, 33);
  std::vector<float> residual(130), restored(130);
  std::vector<double> total(130), arrived(130);
  OneBitGradient sent;
  for (std::uint32_t step = 0; step < 30; ++step) {
    const std::vector<float> gradient = random_floats(130, step);
    quantize_one_bit(gradient, rows, residual, sent);
    restore_one_bit(sent, restored);
    for (std::size_t i = 0; i < residual.size(); ++i) {
      total[i] += gradient[i];
      arrived[i] += restored[i];
      CHECK(arrived[i] + residual[i] == Approx(total[i]).margin(1e-5));
    }
  }
  CHECK(one_bit_bytes(130, rows).value == Approx(4.0 * sent.signs.size() + 8.0 * sent.above.size()));
}

TEST_CASE("one bit of a 2048 x 2048 layer is 1/32 of its floats, and two floats a column",
          "[strategies][arithmetic]") {
  CHECK(one_bit_bytes(2048 * 2048, 2048).value == 4.0 * 2048 * 2048 / 32 + 2048 * 8);
}

TEST_CASE("top-k sends the largest magnitudes and keeps the rest as the residual",
          "[strategies][arithmetic]") {
  const std::size_t count = GENERATE(1, 5, 40, 41);
  std::vector<float> residual(41), restored(41);
  std::vector<std::uint32_t> candidates;
  std::vector<double> total(41), arrived(41);
  SparseGradient sent;
  for (std::uint32_t step = 0; step < 10; ++step) {
    const std::vector<float> gradient = random_floats(41, step);
    select_top_k(gradient, count, residual, candidates, sent);
    restore_top_k(sent, restored);
    REQUIRE(sent.indices.size() == count);
    float least_sent = 2, most_owed = 0;
    for (const float value : sent.values) least_sent = std::min(least_sent, std::abs(value));
    for (std::size_t i = 0; i < residual.size(); ++i) {
      most_owed = std::max(most_owed, std::abs(residual[i]));
      total[i] += gradient[i];
      arrived[i] += restored[i];
      CHECK(arrived[i] + residual[i] == Approx(total[i]).margin(1e-5));
    }
    if (step == 0) CHECK(most_owed <= least_sent);
  }
}

TEST_CASE("top-k selects the elements that a sorted list of magnitudes has first",
          "[strategies][arithmetic]") {
  std::vector<float> gradient = random_floats(3000, 1);
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    if (i % 3 == 0) gradient[i] *= 1e-30F;                        // down to subnormal numbers
    if (i % 5 == 0) gradient[i] = i % 2 == 0 ? 0.125F : -0.125F;  // equal magnitudes
    if (i % 7 == 0) gradient[i] *= 1e-9F;
  }
  std::vector<std::uint32_t> order(gradient.size());
  std::iota(order.begin(), order.end(), 0U);
  std::ranges::stable_sort(order, std::greater<>(), [&](std::uint32_t i) { return std::abs(gradient[i]); });
  for (const std::size_t count : {std::size_t{1}, std::size_t{700}, std::size_t{1500}, std::size_t{2900}}) {
    std::vector<float> residual(gradient.size());
    std::vector<std::uint32_t> candidates, expected(order.begin(), order.begin() + static_cast<int>(count));
    std::ranges::sort(expected);
    SparseGradient sent;
    select_top_k(gradient, count, residual, candidates, sent);
    CHECK(sent.indices == expected);
  }
}

TEST_CASE("top-k takes equal magnitudes in the order of their indices, and never more than k",
          "[strategies][arithmetic]") {
  const std::vector<float> gradient{1, -2, 2, -2, 0.5};
  std::vector<float> residual(5);
  std::vector<std::uint32_t> candidates;
  SparseGradient sent;
  select_top_k(gradient, 2, residual, candidates, sent);
  CHECK(sent.indices == std::vector<std::uint32_t>{1, 2});
  CHECK(residual == std::vector<float>{1, 0, 0, -2, 0.5});
  CHECK_THROWS_WITH(select_top_k(gradient, 6, residual, candidates, sent),
                    "select_top_k: count out of range");
}
