// Tests the exchanges of strategies whose devices share a layer or redistribute what they hold. They are
// executed on small arrays, and the parts must equal what one device alone computes. The values are whole
// numbers in doubles, so that sums are exact in any order.

#include <catch2/catch.hpp>

#include "strategies/collectives/schedule.hpp"
#include "tests/strategies/collectives/play.hpp"

using namespace stepcast;

namespace {

constexpr std::size_t kRanks = 3;
using Vector = std::vector<double>;

/// Rows x columns, small whole numbers that differ.
struct Matrix {
  std::size_t rows, columns;
  double at(std::size_t row, std::size_t column) const {
    return static_cast<double>((7 * row + 5 * column) % 11) - 5;
  }
};

struct Range {
  std::size_t first, last;
};

/// Part of `size` that a rank holds after a reduce-scatter, and brings to an all-gather.
Range part_of(std::size_t rank, std::size_t size) {
  const std::size_t part = (rank + 1) % kRanks, each = size / kRanks;
  return {part * each, (part + 1) * each};
}

/// y[rows] += W[rows, columns] x[columns]; backward: y[columns] += W^T x[rows].
void multiply(const Matrix& w, Range rows, Range columns, const Vector& x, Vector& y, bool backward = false) {
  for (std::size_t r = rows.first; r < rows.last; ++r) {
    for (std::size_t c = columns.first; c < columns.last; ++c) {
      if (backward) {
        y[c] += w.at(r, c) * x[r];
      } else {
        y[r] += w.at(r, c) * x[c];
      }
    }
  }
}

Vector numbers(std::size_t size, int start) {
  Vector values;
  for (std::size_t i = 0; i < size; ++i) values.push_back(start + static_cast<double>(i * i % 5));
  return values;
}

}  // namespace

TEST_CASE("a layer whose filters are dealt out gathers its output and scatters its error signals",
          "[strategies][arithmetic]") {
  const Matrix w{6, 9};
  const Vector x = numbers(w.columns, 1), error = numbers(w.rows, -2);
  Vector output(w.rows), input_error(w.columns);
  multiply(w, {0, w.rows}, {0, w.columns}, x, output);
  multiply(w, {0, w.rows}, {0, w.columns}, error, input_error, true);

  Buffers outputs(kRanks, Vector(w.rows)), errors(kRanks, Vector(w.columns));
  for (std::size_t rank = 0; rank < kRanks; ++rank) {
    multiply(w, part_of(rank, w.rows), {0, w.columns}, x, outputs[rank]);
    multiply(w, part_of(rank, w.rows), {0, w.columns}, error, errors[rank], true);
  }
  play(ring_all_gather({kRanks, 1}), outputs);
  play(ring_reduce_scatter({kRanks, 1}), errors);
  for (std::size_t rank = 0; rank < kRanks; ++rank) {
    CHECK(outputs[rank] == output);
    const auto [first, last] = part_of(rank, w.columns);
    for (std::size_t c = first; c < last; ++c) CHECK(errors[rank][c] == input_error[c]);
  }
}

TEST_CASE("a hidden layer dealt out by units is one sum of its block's output", "[strategies][arithmetic]") {
  const Matrix up{9, 3}, down{3, 9};
  const Vector x = numbers(up.columns, -1);
  const auto hidden_of = [&](Range units) {
    Vector hidden(up.rows);
    multiply(up, units, {0, up.columns}, x, hidden);
    for (double& value : hidden) value = std::max(0.0, value);
    return hidden;
  };
  Vector output(down.rows);
  multiply(down, {0, down.rows}, {0, down.columns}, hidden_of({0, up.rows}), output);

  Buffers sums(kRanks, Vector(down.rows));
  for (std::size_t rank = 0; rank < kRanks; ++rank) {
    const Range units = part_of(rank, up.rows);
    multiply(down, {0, down.rows}, units, hidden_of(units), sums[rank]);
  }
  play(ring_all_reduce({kRanks, 1}), sums);
  for (const Vector& sum : sums) CHECK(sum == output);
}

TEST_CASE("dealt-out optimizer state and gradients update as whole ones do", "[strategies][arithmetic]") {
  constexpr std::size_t kSize = 6;
  const auto update = [](const Vector& gradient, Range range, Vector& momentum, Vector& parameters) {
    for (std::size_t i = range.first; i < range.last; ++i) {
      momentum[i] = 0.5 * momentum[i] + gradient[i];
      parameters[i] -= 0.25 * momentum[i];
    }
  };
  Buffers gradients, whole(kRanks, numbers(kSize, 3)), dealt = whole;
  Buffers momenta(kRanks, numbers(kSize, 1)), shares = momenta;
  for (std::size_t rank = 0; rank < kRanks; ++rank)
    gradients.push_back(numbers(kSize, static_cast<int>(rank) - 1));
  Buffers scattered = gradients;
  play(ring_all_reduce({kRanks, 1}), gradients);
  play(ring_reduce_scatter({kRanks, 1}), scattered);
  for (std::size_t rank = 0; rank < kRanks; ++rank) {
    update(gradients[rank], {0, kSize}, momenta[rank], whole[rank]);
    update(scattered[rank], part_of(rank, kSize), shares[rank], dealt[rank]);
  }
  CHECK(dealt[0] != whole[0]);  // each has updated its share alone
  play(ring_all_gather({kRanks, 1}), dealt);
  CHECK(dealt == whole);
}

TEST_CASE("tokens visit their experts and come back in their places", "[strategies][arithmetic]") {
  // Part s x P + t of the exchange matrix is the token of rank s for the expert of rank t.
  Buffers tokens(kRanks, Vector(kRanks * kRanks));
  for (std::size_t s = 0; s < kRanks; ++s) {
    for (std::size_t t = 0; t < kRanks; ++t) tokens[s][s * kRanks + t] = 10 * s + t + 1;
  }
  const Buffers sent = tokens;
  play(all_to_all({kRanks, 1}), tokens);
  Buffers answers(kRanks, Vector(kRanks * kRanks));
  for (std::size_t t = 0; t < kRanks; ++t) {
    const double expert = t + 2;  // expert t multiplies by t + 2
    for (std::size_t s = 0; s < kRanks; ++s) answers[t][t * kRanks + s] = expert * tokens[t][s * kRanks + t];
  }
  play(all_to_all({kRanks, 1}), answers);
  for (std::size_t s = 0; s < kRanks; ++s) {
    for (std::size_t t = 0; t < kRanks; ++t)
      CHECK(answers[s][t * kRanks + s] == static_cast<double>(t + 2) * sent[s][s * kRanks + t]);
  }
}
