#include "check/reference/reference.hpp"

#include <catch2/catch.hpp>

#include "check/cases.hpp"
#include "models/partition/spatial_shard.hpp"

namespace stepcast::reference_test {
using namespace stepcast::test;

namespace {

double weighted_output(const Case& c, const Array& weights) {
  const Array y = reference::forward(c);
  double sum = 0;
  for (std::size_t i = 0; i < y.size(); ++i) sum += weights.at(i) * y[i];
  return sum;
}

/// Central difference of sum(weights * output) with respect to one number of the case.
double slope(Case& c, const Array& weights, double& number) {
  constexpr double kStep = 1e-5;
  const double middle = number;
  number = middle + kStep;
  const double above = weighted_output(c, weights);
  number = middle - kStep;
  const double below = weighted_output(c, weights);
  number = middle;
  return (above - below) / (2 * kStep);
}

/// The error of a central difference is about step^2 (1e-10) and rounding / step (1e-11), times the size of
/// the sums.
constexpr double kMargin = 1e-7;

void check_gradient(Case& c, const Array& weights, Array& numbers, const Array& gradient) {
  REQUIRE(numbers.size() == gradient.size());
  const std::size_t stride = numbers.size() / 60 + 1;  // tests a sample of the numbers, to save time
  for (std::size_t i = 0; i < numbers.size(); i += stride) {
    INFO("element " << i);
    CHECK(gradient[i] == Approx(slope(c, weights, numbers[i])).margin(kMargin));
  }
}

}  // namespace

TEST_CASE("every reference gradient is the slope of its forward pass", "[kernels][reference]") {
  for (const NamedCase& named : processor_cases()) {
    INFO(named.name);
    Case c = named.value;
    const Array weights = uniform_array(reference::forward(c).size(), 99);
    const reference::Gradients gradients = reference::backward(c, weights);
    for (std::size_t k = 0; k < c.parameters.size(); ++k) {
      INFO("parameter " << k);
      check_gradient(c, weights, c.parameters[k], gradients.parameters[k]);
    }
    if (c.layer.kind == LayerKind::embedding) continue;  // row indices have no gradient
    for (std::size_t k = 0; k < c.inputs.size(); ++k) {
      INFO("input " << k);
      check_gradient(c, weights, c.inputs[k], gradients.inputs[k]);
    }
  }
}

TEST_CASE("a convolution with a single 1 in its kernel shifts the image", "[kernels][reference]") {
  const Window window{{3, 3}, {1, 1}, {1, 1}, {1, 1}};
  Case c;
  c.layer = convolution_layer({1, 3, 3}, 1, window, false);
  c.inputs = {{1, 2, 3, 4, 5, 6, 7, 8, 9}};
  c.parameters = {{1, 0, 0, 0, 0, 0, 0, 0, 0}};  // cross-correlation: y[i][j] = x[i-1][j-1]
  CHECK(reference::forward(c) == Array{0, 0, 0, 0, 1, 2, 0, 4, 5});
}

TEST_CASE("an LSTM whose gates are half open halves its memory at every step", "[kernels][reference]") {
  Case c;
  c.layer = recurrent_layer(LayerKind::lstm, {2, 1}, 1, false, true);
  c.inputs = {{0, 0}};
  c.parameters = {{0, 0, 0, 0}, {0, 0, 0, 0}, {0, 0, 1, 0}};  // only the candidate has a bias
  const double first = 0.5 * std::tanh(1.0), second = 0.5 * first + first;
  const Array y = reference::forward(c);
  CHECK(y[0] == Approx(0.5 * std::tanh(first)));
  CHECK(y[1] == Approx(0.5 * std::tanh(second)));
}

TEST_CASE("a GRU whose update gate is shut takes the candidate", "[kernels][reference]") {
  Case c;
  c.layer = recurrent_layer(LayerKind::gru, {1, 1}, 1, false, true);
  c.inputs = {{0.25}};
  c.parameters = {{0, 0, 2}, {0, 0, 0}, {-800, 0, 0}};
  CHECK(reference::forward(c)[0] == Approx(std::tanh(0.5)));
}

TEST_CASE("attention over equal keys is the mean of the values, causal attention of the earlier ones",
          "[kernels][reference]") {
  Case c;
  c.layer = attention_layer({2, 3}, 1, GENERATE(false, true));
  c.inputs = {{1, 1, 10, 1, 1, 20}};  // query, key, value of two tokens
  const Array y = reference::forward(c);
  CHECK(y[0] == Approx(c.layer.causal ? 10 : 15));
  CHECK(y[1] == Approx(15));
}

namespace {

using test::Array;
using test::Case;
using Indices = std::vector<std::size_t>;

/// Row-major indices of the elements of a box of an array.
Indices indices_of(const Shape& sizes, const std::vector<Rows>& box) {
  Indices indices{0};
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    Indices finer;
    for (const std::size_t index : indices) {
      for (std::int64_t row = box[i].first; row < box[i].last; ++row) finer.push_back(index * sizes[i] + row);
    }
    indices = std::move(finer);
  }
  return indices;
}

Array picked(const Array& all, const Indices& indices) {
  Array part;
  for (const std::size_t index : indices) part.push_back(all[index]);
  return part;
}

/// A locally connected layer with its input, and where one machine's part of its arrays is.
struct Whole {
  Case c;
  Whole() {
    c.batch = 2;
    c.layer = test::locally_connected_layer({2, 9, 8}, 3, {{3, 5}, {1, 1}, {1, 2}, {1, 2}}, true);
    c.inputs = {test::uniform_array(2 * test::elements(c.layer.input), 1)};
    for (std::uint32_t k = 0; k < 2; ++k)
      c.parameters.push_back(test::uniform_array(test::elements(c.layer.parameters[k].shape), 2 + k));
  }

  Indices in_map(const Shape& sample, const Rows& rows, const Rows& columns) const {
    return indices_of({c.batch, sample[0], sample[1], sample[2]},
                      {{0, c.batch}, {0, sample[0]}, rows, columns});
  }
  Indices in_parameter(std::size_t k, const Rows& rows, const Rows& columns) const {
    const Shape& map = c.layer.output;
    const auto each = std::ssize(c.parameters[k]) / (map[1] * map[2]);
    return indices_of({map[1], map[2], each}, {rows, columns, {0, each}});
  }
};

/// What a machine has: its filters, and its rows of the input with their halo.
struct Part {
  Case c;
  Indices inputs, outputs;  ///< of its arrays in those of the whole layer

  Part(const Whole& whole, const LayerShardRows& rows)
      : inputs(whole.in_map(whole.c.layer.input, rows[0].read, rows[1].read)),
        outputs(whole.in_map(whole.c.layer.output, rows[0].out, rows[1].out)) {
    Window window = whole.c.layer.window;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      window.pad_before[i] = rows[i].pad.before;
      window.pad_after[i] = rows[i].pad.after;
    }
    c.batch = whole.c.batch;
    c.layer = test::locally_connected_layer(
        {whole.c.layer.input[0], rows[0].read.size(), rows[1].read.size()}, 3, window, true);
    c.inputs = {picked(whole.c.inputs[0], inputs)};
    for (std::size_t k = 0; k < 2; ++k)
      c.parameters.push_back(picked(whole.c.parameters[k], whole.in_parameter(k, rows[0].out, rows[1].out)));
  }
};

}  // namespace

TEST_CASE("machines with their own filters and a halo compute a locally connected layer",
          "[kernels][reference]") {
  const Whole whole;
  const Array output = reference::forward(whole.c), slope = test::uniform_array(output.size(), 9);
  const reference::Gradients gradients = reference::backward(whole.c, slope);
  const SpatialPartition partition{{3, 2}, 1};
  Array errors(whole.c.inputs[0].size());  // of the input: machines add up what they find for common rows
  for (int machine = 0; machine < device_count(partition.parts); ++machine) {
    CAPTURE(machine);
    const LayerShardRows rows = shard_rows(whole.c.layer, partition, grid_place(partition.parts, machine));
    const Part part(whole, rows);
    CHECK(reference::forward(part.c) == picked(output, part.outputs));
    const reference::Gradients own = reference::backward(part.c, picked(slope, part.outputs));
    for (std::size_t k = 0; k < 2; ++k)
      CHECK(own.parameters[k] ==
            picked(gradients.parameters[k], whole.in_parameter(k, rows[0].out, rows[1].out)));
    for (std::size_t i = 0; i < part.inputs.size(); ++i) errors[part.inputs[i]] += own.inputs[0][i];
  }
  for (std::size_t i = 0; i < errors.size(); ++i)
    CHECK(errors[i] == Approx(gradients.inputs[0][i]).margin(1e-12));
}
}  // namespace stepcast::reference_test
