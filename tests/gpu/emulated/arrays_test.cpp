#include <algorithm>

#include "kernels/cudnn/cuda/elements.hpp"
#include "kernels/cudnn/cuda/moves.hpp"
#include "kernels/cudnn/cuda/optimizer_updates.hpp"
#include "layered.hpp"
#include "strategies/arithmetic/compressed_values.hpp"

// Compares the project's CUDA kernels, run on the host, with the reference implementations.
namespace stepcast::test {

TEST_CASE("every optimizer's kernel follows the CPU's, on sums of several gradients", "[emulated]") {
  const auto kind = GENERATE(Optimizer::Kind::sgd, Optimizer::Kind::adagrad, Optimizer::Kind::rmsprop,
                             Optimizer::Kind::adam);
  const Optimizer optimizer{
      .kind = kind, .learning_rate = 0.05, .momentum = GENERATE(0.0, 0.9), .decay = 0.99};
  constexpr std::size_t kElements = 1037;
  std::vector<float> value = as_floats(uniform_array(kElements, 1)), first(kElements), second(kElements);
  std::vector<float> own = value, own_first(first), own_second(second);
  for (std::uint32_t step = 1; step <= 5; ++step) {
    const std::vector<float> gradient = as_floats(uniform_array(kElements, 10 + step));
    update_on_cpu(optimizer,
                  {value.data(), gradient.data(), {first.data(), second.data()}, kElements, step, 0.25F});
    cudnn::update(
        optimizer,
        {own.data(), gradient.data(), {own_first.data(), own_second.data()}, kElements, step, 0.25F},
        nullptr);
  }
  check_near(floats_of(own), floats_of(value), 1e-5);
}

TEST_CASE("compression's kernels send what the CPU's do and keep the same residuals", "[emulated]") {
  constexpr std::size_t kElements = 1000,
                        kRows = 300;  // the last column is shorter, and no column fills its words
  const std::vector<float> gradient = as_floats(uniform_array(kElements, 1));
  std::vector<float> residual = as_floats(uniform_array(kElements, 2)), restored(kElements);
  std::vector<float> own_residual = residual, own_restored(kElements), below(4), above(4);
  std::vector<std::uint32_t> words(4 * 10);
  const OneBitArrays sent{words.data(), below.data(), above.data()};
  OneBitGradient bits;
  stepcast::quantize_one_bit(gradient, kRows, residual, bits);
  stepcast::restore_one_bit(bits, restored);
  cudnn::quantize_one_bit(gradient.data(), kElements, kRows, own_residual.data(), sent, nullptr);
  cudnn::restore_one_bit(sent, kElements, kRows, own_restored.data(), nullptr);
  check_near(floats_of(own_restored), floats_of(restored), 1e-6);
  check_near(floats_of(own_residual), floats_of(residual), 1e-6);

  std::vector<std::uint16_t> halves(kElements), own_halves(kElements);
  own_residual = residual;
  stepcast::to_halves_with_feedback(gradient, residual, halves);
  cudnn::to_halves_with_feedback(gradient.data(), own_residual.data(), own_halves.data(), kElements, nullptr);
  CHECK(own_halves == halves);
  check_near(floats_of(own_residual), floats_of(residual), 1e-7);
  stepcast::from_halves(halves, restored);
  cudnn::from_halves(halves.data(), own_restored.data(), kElements, nullptr);
  CHECK(own_restored == restored);
}

TEST_CASE("the background load copies whole arrays", "[emulated]") {
  const auto count = GENERATE(std::int64_t{4}, std::int64_t{4 * 4 * 2 * 512 + 12});
  const Array terms = uniform_array(count, 1);
  const Memory from({count}, Element::f32, false, terms), to({count}, Element::f32, false);
  run_background_load(from.floats(), to.floats(), count, 2, 2, nullptr);
  CHECK(to.values() == from.values());
}

TEST_CASE("sums start at any element of an array", "[emulated]") {
  const Array terms = uniform_array(1037, 1), other = uniform_array(1037, 2);
  const Memory from({1037}, Element::f32, false, terms);
  for (const std::size_t offset : {0, 1, 2, 3, 4}) {
    for (const std::size_t begin : {0, 1}) {
      const Memory to({1037}, Element::f32, false, other);
      cudnn::sum({to.floats() + offset, from.floats() + begin}, to.floats() + offset, Element::f32, 1000,
                 nullptr);
      Array expected = other;
      for (std::size_t i = 0; i < 1000; ++i) expected[offset + i] += terms[i + begin];
      check_near(to.values(), expected, 1e-6);
    }
  }
}

TEST_CASE("images are transposed by tiles that reach beyond them", "[emulated]") {
  const Element from = GENERATE(Element::f32, Element::f16, Element::bf16),
                to = GENERATE(Element::f32, Element::f16, Element::bf16);
  const bool last = GENERATE(false, true);
  const Shape shape{2, 70, 9, 11};
  Array values(2 * 70 * 99);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = i % 251;  // of 8 bits
  const Memory source(shape, from, last, values), target(shape, to, !last);
  Move move{.from_element = from, .to_element = to};
  for (std::size_t d = 0; d < 4; ++d) {
    move.size[d + 1] = shape[d];
    move.from_stride[d + 1] = source.strides()[d];
    move.to_stride[d + 1] = target.strides()[d];
  }
  move_elements(move, source.data(), target.data(), nullptr);
  CHECK(target.values() == values);
}

TEST_CASE("a conversion starts at any element of an array", "[emulated]") {
  const Array values = uniform_array(1037, 1);
  const Memory from({1037}, Element::f32, false, values);
  for (const std::size_t offset : {0, 1, 4}) {
    const Memory to({1037}, Element::bf16, false);
    convert(from.floats() + offset, Element::f32, to.data(), Element::bf16, 1001, nullptr);
    Array expected(1037);
    std::copy_n(values.begin() + offset, 1001, expected.begin());
    check_near(to.values(), expected, 1.0 / 128);
  }
}

TEST_CASE("a bias is added to packs of channels, and to packs of one channel", "[emulated]") {
  const Element element = GENERATE(Element::f32, Element::f16, Element::bf16);
  const bool innermost = GENERATE(false, true);
  const Array values = uniform_array(5 * 24 * 8, 1);
  const Memory x({5 * 24 * 8}, element, false, values), other({5 * 24 * 8}, element, false);
  const Memory& y = GENERATE(false, true) ? other : x;
  const Memory bias({24}, Element::f32, false, uniform_array(24, 2));
  add_bias(x.data(), y.data(), bias.floats(), element, 5 * 24 * 8, innermost ? 1 : 8, 24, nullptr);
  Array expected = values;
  for (std::size_t i = 0; i < expected.size(); ++i)
    expected[i] += bias.floats()[i / (innermost ? 1 : 8) % 24];
  check_near(y.values(), expected, element == Element::f32 ? 1e-6 : 1.0 / 128);
}

TEST_CASE("elements move between layouts and element types, and a bias is added to its channel",
          "[emulated]") {
  const Shape shape{2, 3, 4, 5};
  const Array values = uniform_array(120, 1);
  const Memory plain(shape, Element::f32, false, values), transposed(shape, Element::bf16, true);
  Move move{.to_element = Element::bf16};
  for (std::size_t d = 0; d < 4; ++d) {
    move.size[d + 1] = shape[d];
    move.from_stride[d + 1] = plain.strides()[d];
    move.to_stride[d + 1] = transposed.strides()[d];
  }
  move_elements(move, plain.data(), transposed.data(), nullptr);
  check_near(transposed.values(), values, 1.0 / 128);
  const Memory shorter(shape, Element::f16, false);
  convert(plain.data(), Element::f32, shorter.data(), Element::f16, 120, nullptr);
  check_near(shorter.values(), values, 1.0 / 1024);
  const std::vector<float> bias{10, 20, 30};
  for (const bool last : {false, true}) {
    const Memory y(shape, Element::f32, last, values);
    add_bias(y.data(), y.data(), bias.data(), Element::f32, 120, last ? 1 : 20, 3, nullptr);
    Array expected = values;
    for (std::size_t i = 0; i < 120; ++i) expected[i] += bias[i / 20 % 3];
    check_near(y.values(), expected, 1e-6);
  }
  const std::vector<CopySegment> list{{0, 50, 20}, {30, 0, 40}};
  std::vector<float> target(120);
  copy_segments({list.data(), 2, 40}, plain.data(), Element::f32, target.data(), Element::f32, nullptr);
  CHECK(target[50] == plain.floats()[0]);
  CHECK(target[69] == plain.floats()[19]);
  CHECK(target[39] == plain.floats()[69]);
}

TEST_CASE("sums over all but the channels are those of plain loops", "[emulated]") {
  struct Sizes {
    std::int64_t outer, channels, inner;
  };
  const auto c = GENERATE(values<Sizes>(
      {{7, 5, 1}, {300, 40, 1}, {1000, 4, 1}, {9, 600, 1}, {3, 4, 50}, {2, 600, 3}, {20, 3, 264}}));
  const bool one_part = GENERATE(false, true);
  const std::size_t count = c.outer * c.channels * c.inner;
  const Array values = uniform_array(count, 1);
  const Memory x({static_cast<std::int64_t>(count)}, Element::f32, false, values);
  std::vector<float> sums(c.channels), memory(kWorkspace);
  Array expected(sums.size());
  for (std::size_t i = 0; i < count; ++i) expected[i / c.inner % expected.size()] += values[i];
  const std::size_t room = one_part ? 2 * sums.size() : memory.size();
  channel_sums({c.outer, c.channels, c.inner}, x.data(), sums.data(), {memory.data(), 4 * room}, nullptr);
  check_near(floats_of(sums), expected, 1e-5);
}

}  // namespace stepcast::test
