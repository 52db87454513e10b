#include <algorithm>

#include "kernels/cudnn/cuda/elements.hpp"
#include "kernels/cudnn/cuda/moves.hpp"
#include "kernels/cudnn/cuda/rows.hpp"
#include "kernels/network/dropout_mask.hpp"
#include "layered.hpp"

// Compares the project's CUDA kernels, run on the host, with the reference implementations.
namespace stepcast::test {

TEST_CASE("losses' kernels compute what plain loops do, with their weight", "[emulated]") {
  const Way way{GENERATE(Element::f32, Element::f16, Element::bf16)};
  constexpr double kWeight = 0.25;
  for (const NamedCase& named : cases_of({LayerKind::softmax_cross_entropy, LayerKind::sigmoid_cross_entropy,
                                          LayerKind::mean_squared_error})) {
    CAPTURE(named.name);
    Layered l{named.value, way};
    const std::vector<float> targets = as_floats(l.c.targets);
    double loss = -1;  // the kernel adds
    if (l.c.layer.kind == LayerKind::softmax_cross_entropy) {
      const Rows rows{l.elements() / l.in.back(), l.in.back(), way.element};
      const Memory p(l.in, way.element, false);
      softmax_loss_forward(rows, kWeight, l.x.data(), targets.data(), p.data(), &loss, nullptr);
      softmax_loss_backward(rows, kWeight, p.data(), targets.data(), l.dx.data(), nullptr);
    } else {
      const ElementLossShape shape{.squared = l.c.layer.kind == LayerKind::mean_squared_error,
                                   .weight = kWeight,
                                   .element = way.element,
                                   .elements = l.elements()};
      element_loss_forward(shape, l.x.data(), targets.data(), &loss, nullptr);
      element_loss_backward(shape, l.x.data(), targets.data(), l.dx.data(), nullptr);
    }
    CHECK(loss == Approx(kWeight * reference::forward(l.c).at(0)).margin(way.margin()));
    check_near(l.dx.values(), reference::backward(l.c, {kWeight}).inputs[0], way.margin());
  }
}

TEST_CASE("parts of a loss whose classes two devices share make up the loss of the whole", "[emulated]") {
  const Way way{GENERATE(Element::f32, Element::f16, Element::bf16)};
  constexpr std::int64_t kRows = 5, kLength = 40,
                         kClasses = 77;  // the second device has 37 classes and 3 elements of padding
  constexpr double kWeight = 0.25;
  const Array scores = uniform_array(kRows * kClasses, 1);
  const std::vector<float> targets{0, 39, 40, 76, 12};
  struct Part {
    VocabShard shape;
    Memory x, dx;
    std::vector<float> e, sums;
  };
  std::vector<Part> parts;
  for (std::int64_t first = 0; first < kClasses; first += kLength) {
    Array own(kRows * kLength, 50);  // padding is ignored, whatever its value
    const std::int64_t classes = std::min(kLength, kClasses - first);
    for (std::int64_t at = 0; at < kRows * kLength; ++at) {
      if (at % kLength < classes) own[at] = scores[at / kLength * kClasses + first + at % kLength];
    }
    parts.push_back({{{kRows, kLength, way.element}, first, classes},
                     Memory({kRows, kLength}, way.element, false, own),
                     Memory({kRows, kLength}, way.element, false, own),
                     std::vector<float>(own.size(), -1),
                     std::vector<float>(2 * kRows, -1)});
    Part& p = parts.back();
    vocab_parallel_sums(p.shape, p.x.data(), targets.data(), p.e.data(), p.sums.data(), nullptr);
  }
  std::vector<float> sums = parts[0].sums;
  for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += parts[1].sums[i];
  double loss = -1, expected = 0;
  vocab_parallel_value(kRows, kWeight, sums.data(), &loss, nullptr);
  for (std::int64_t row = 0; row < kRows; ++row) {
    double total = 0;
    for (std::int64_t i = 0; i < kClasses; ++i) total += std::exp(scores[row * kClasses + i]);
    const std::int64_t target = targets[row];
    expected += kWeight * (std::log(total) - scores[row * kClasses + target]) / kRows;
  }
  CHECK(loss == Approx(expected).margin(way.margin()));
  for (const Part& p : parts) {
    vocab_parallel_backward(p.shape, kWeight, p.e.data(), sums.data(), targets.data(), p.dx.data(), nullptr);
    const Array slopes = p.dx.values();
    for (std::int64_t at = 0; at < kRows * kLength; ++at) {
      const std::int64_t row = at / kLength, i = at % kLength;
      double total = 0;
      for (std::int64_t k = 0; k < kClasses; ++k) total += std::exp(scores[row * kClasses + k]);
      const double hit = p.shape.first + i == targets[row] ? 1 : 0;
      const double slope = std::exp(scores[row * kClasses + p.shape.first + i]) / total - hit;
      CHECK(slopes[at] ==
            Approx(i < p.shape.classes ? kWeight / kRows * slope : 0).margin(kWeight / kRows * way.margin()));
    }
  }
}

TEST_CASE("softmax of rows and its gradient follow the formula", "[emulated]") {
  const bool causal = GENERATE(false, true);
  // Not a multiple of a warp or of a pack; packs that a warp holds; packs that a block holds.
  const std::int64_t length = GENERATE(37, 40, 1028), count = std::min<std::int64_t>(2 * length, 100);
  const Array scores = uniform_array(count * length, 1), slope = uniform_array(scores.size(), 2);
  const Memory x({count, length}, Element::f32, false, scores), p({count, length}, Element::f32, false),
      g({count, length}, Element::f32, false, slope);
  const Rows rows{count, length};
  softmax_rows(rows, causal, x.data(), p.data(), nullptr);
  softmax_rows_backward(rows, 0.5F, p.data(), g.data(), nullptr);
  for (std::int64_t row = 0; row < count; ++row) {
    const std::int64_t seen = causal ? row % length + 1 : length;
    double total = 0, mean = 0;
    for (std::int64_t i = 0; i < seen; ++i) total += std::exp(scores[row * length + i]);
    const auto share = [&](std::int64_t i) {
      return i < seen ? std::exp(scores[row * length + i]) / total : 0;
    };
    for (std::int64_t i = 0; i < length; ++i) mean += share(i) * slope[row * length + i];
    for (std::int64_t i = 0; i < length; ++i) {
      CHECK(p.floats()[row * length + i] == Approx(share(i)).margin(1e-6));
      CHECK(g.floats()[row * length + i] ==
            Approx(0.5 * share(i) * (slope[row * length + i] - mean)).margin(1e-6));
    }
  }
}

TEST_CASE("embedding's kernels copy rows and add up their gradients", "[emulated]") {
  const NamedCase named = cases_of({LayerKind::embedding}).front();
  const std::vector<float> tokens = as_floats(named.value.inputs[0]),
                           table = as_floats(named.value.parameters[0]);
  const auto count = std::ssize(tokens), columns = named.value.layer.output.back();
  std::vector<float> y(tokens.size() * columns), gradient(table.size());
  embedding_forward(tokens.data(), table.data(), y.data(), Element::f32, count, columns, nullptr);
  check_near(floats_of(y), reference::forward(named.value), 0);
  const Array slope = uniform_array(y.size(), 99);
  const std::vector<float> dy = as_floats(slope);
  embedding_backward(tokens.data(), dy.data(), gradient.data(), Element::f32, count, columns, nullptr);
  check_near(floats_of(gradient), reference::backward(named.value, slope).parameters[0], 1e-6);
}

TEST_CASE("dropout's kernel draws the mask of the reference", "[emulated]") {
  Case c = cases_of({LayerKind::dropout}).front().value;
  c.dropout_key = dropout_key(3, 0, 0);
  Layered l{c, {}};
  const double share = c.layer.coefficient;
  dropout({c.dropout_key, dropout_threshold(share), static_cast<float>(1 / (1 - share))}, l.x.data(),
          l.y.data(), Element::f32, l.elements(), nullptr);
  l.check_output();
}

}  // namespace stepcast::test
