#include <cmath>
#include <limits>

#include "kernels/cudnn/cuda/elements.hpp"
#include "kernels/cudnn/cuda/moves.hpp"
#include "kernels/cudnn/cuda/rows.hpp"
#include "kernels/cudnn/runtime/tensor.hpp"
#include "layered.hpp"

namespace stepcast::test {
// Compares the project's CUDA kernels, run on the host, with the reference implementations.

TEST_CASE("batch norm's kernels compute what plain loops do", "[emulated]") {
  const Way way = any_way();
  std::vector<NamedCase> cases = cases_of({LayerKind::batch_norm});
  Case wide = cases.front().value;  // channels and planes of whole packs
  wide.layer = norm_layer(LayerKind::batch_norm, {8, 4, 4});
  wide.inputs = {uniform_array(2 * 8 * 16, 1)};
  wide.batch = 2;
  for (std::size_t k = 0; k < 4; ++k) wide.parameters[k] = uniform_array(8, 20 + k);
  cases.push_back({"batch_norm of whole packs", wide});
  for (const NamedCase& named : cases) {
    CAPTURE(named.name);
    Layered l{named.value, way};
    const std::size_t count = l.channels().channels;
    std::vector<float> scale = l.parameter(0), shift = l.parameter(1), mean(count), inverse(count),
                       running(count), spread(count), scale_gradient(count), shift_gradient(count);
    const BatchNormArrays arrays{scale.data(),   shift.data(),   mean.data(),
                                 inverse.data(), running.data(), spread.data()};
    batch_norm_forward(l.channels(), arrays, l.x.data(), l.y.data(), l.scratch, nullptr);
    l.check_output();
    batch_norm_backward(l.channels(), arrays, l.x.data(), l.dy.data(), l.dx.data(), scale_gradient.data(),
                        shift_gradient.data(), l.scratch, nullptr);
    const reference::Gradients expected = l.backward();
    // The gradient divides rounding errors by a deviation, hence twice the margin.
    check_near(l.dx.values(), expected.inputs[0], 2 * way.margin());
    check_near(floats_of(scale_gradient), expected.parameters[0], 2 * way.margin());
    check_near(floats_of(shift_gradient), expected.parameters[1], 2 * way.margin());
    CHECK(running[0] == Approx(0.1F * mean[0]));
  }
}

TEST_CASE(
    "a batch norm with the ReLU after it, and with an addition before that, is what the three layers compute",
    "[emulated]") {
  const Way way = any_way();
  const bool adds = GENERATE(false, true);
  const NormBeforeRelu made = norm_before_relu(GENERATE(8, 5));  // whole packs of channels, or not
  Layered l{made.norm, way};
  Array expected = reference::forward(made.norm), masked = l.slope;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (adds) expected[i] += made.term[i];
    if (expected[i] <= 0) expected[i] = masked[i] = 0;
  }
  const Memory term(l.in, way.element, way.channels_last, made.term),
      kept(l.in, way.element, way.channels_last);
  const std::size_t count = l.channels().channels;
  std::vector<float> scale = l.parameter(0), shift = l.parameter(1), mean(count), inverse(count),
                     running(count), spread(count), scale_gradient(count), shift_gradient(count);
  const BatchNormArrays norm{scale.data(),   shift.data(),   mean.data(),
                             inverse.data(), running.data(), spread.data()};
  const NormReluArrays arrays{l.x.data(),  adds ? term.data() : nullptr, l.y.data(),
                              l.dy.data(), adds ? kept.data() : nullptr, l.dx.data()};
  batch_norm_relu_forward(l.channels(), norm, arrays, l.scratch, nullptr);
  check_near(l.y.values(), expected, way.margin());
  batch_norm_relu_backward(l.channels(), norm, arrays, scale_gradient.data(), shift_gradient.data(),
                           l.scratch, nullptr);
  const reference::Gradients gradients = reference::backward(made.norm, masked);
  check_near(l.dx.values(), gradients.inputs[0], 2 * way.margin());
  check_near(floats_of(scale_gradient), gradients.parameters[0], 2 * way.margin());
  check_near(floats_of(shift_gradient), gradients.parameters[1], 2 * way.margin());
  if (adds) check_near(kept.values(), masked, way.margin());
  CHECK(running[0] == Approx(0.1F * mean[0]));
}

TEST_CASE("what is not a number passes the ReLU of a batch norm", "[emulated]") {
  const NormBeforeRelu made = norm_before_relu(8);
  Layered l{made.norm, {Element::f32, true}};
  Array broken = made.term;
  broken[3] = std::numeric_limits<double>::quiet_NaN();
  const Memory term(l.in, Element::f32, true, broken);
  std::vector<float> scale = l.parameter(0), shift = l.parameter(1), mean(8), inverse(8);
  batch_norm_relu_forward(l.channels(), {scale.data(), shift.data(), mean.data(), inverse.data()},
                          {.x = l.x.data(), .added = term.data(), .y = l.y.data()}, l.scratch, nullptr);
  CHECK(std::isnan(l.y.values()[3]));
}

TEST_CASE("batch norm's threads have several lines or planes each", "[emulated][long]") {
  const Channels channels = GENERATE(Channels{60000, 20, 1}, Channels{40, 1100, 36});
  const std::size_t elements = channels.elements(), count = channels.channels;
  const std::vector<float> x = as_floats(uniform_array(elements, 1)),
                           dy = as_floats(uniform_array(elements, 2));
  const Memory in({channels.elements()}, Element::f32, false, floats_of(x)),
      slope({channels.elements()}, Element::f32, false, floats_of(dy));
  Memory y({channels.elements()}, Element::f32, false), dx({channels.elements()}, Element::f32, false);
  std::vector<float> scale, shift(count, 0.5F), mean(count), inverse(count), running(count), spread(count),
      scale_gradient(count), shift_gradient(count), partial(kWorkspace);
  for (std::size_t c = 0; c < count; ++c) scale.push_back(1 + c % 20);
  const Scratch scratch{partial.data(), partial.size() * sizeof(float)};
  const BatchNormArrays arrays{scale.data(),   shift.data(),   mean.data(),
                               inverse.data(), running.data(), spread.data()};
  batch_norm_forward(channels, arrays, in.data(), y.data(), scratch, nullptr);
  batch_norm_backward(channels, arrays, in.data(), slope.data(), dx.data(), scale_gradient.data(),
                      shift_gradient.data(), scratch, nullptr);
  const double lines = elements / count;
  double worst = 0, worst_back = 0;
  for (std::size_t i = 0; i < elements; ++i) {
    const std::size_t c = i / channels.inner % count;
    const double normal = (x[i] - double{mean[c]}) * inverse[c];
    const double back = dy[i] - (shift_gradient[c] + normal * scale_gradient[c]) / lines;
    worst = std::max(worst, std::abs(y.floats()[i] - (scale[c] * normal + 0.5)));
    worst_back = std::max(worst_back, std::abs(dx.floats()[i] - scale[c] * inverse[c] * back));
  }
  CHECK(worst < 1e-4);
  CHECK(worst_back < 1e-4);
  CHECK(mean[3] != mean[4]);
}

TEST_CASE("layer norm's kernels compute what plain loops do", "[emulated]") {
  const Way way{GENERATE(Element::f32, Element::f16, Element::bf16)};
  for (const NamedCase& named : cases_of({LayerKind::layer_norm})) {
    CAPTURE(named.name);
    Layered l{named.value, way};
    const std::int64_t length = l.in.back();
    const cudnn::Rows rows{l.elements() / length, length, way.element};
    std::vector<float> scale = l.parameter(0), shift = l.parameter(1), mean(rows.count), inverse(mean),
                       scale_gradient(scale.size()), shift_gradient(scale.size());
    layer_norm_forward(rows, l.x.data(), scale.data(), shift.data(), l.y.data(), mean.data(), inverse.data(),
                       nullptr);
    l.check_output();
    layer_norm_backward(rows, l.x.data(), l.dy.data(), scale.data(), mean.data(), inverse.data(), l.dx.data(),
                        nullptr);
    l.check_input_gradient();
    layer_norm_parameters({rows.count, length, 1, way.element}, l.x.data(), l.dy.data(), mean.data(),
                          inverse.data(), scale_gradient.data(), shift_gradient.data(), l.scratch, nullptr);
    check_near(floats_of(scale_gradient), l.backward().parameters[0], 2 * way.margin());
    check_near(floats_of(shift_gradient), l.backward().parameters[1], 2 * way.margin());
  }
}

TEST_CASE("activations' kernels compute what plain loops do", "[emulated]") {
  const Way way = any_way();
  for (const NamedCase& named : cases_of({LayerKind::relu, LayerKind::leaky_relu, LayerKind::sigmoid,
                                          LayerKind::tanh, LayerKind::elu, LayerKind::gelu})) {
    CAPTURE(named.name);
    Layered l{named.value, way};
    const LayerKind kind = l.c.layer.kind;
    const Activation how{kind, kind == LayerKind::relu ? 0.F : static_cast<float>(l.c.layer.coefficient)};
    activation_forward(how, l.x.data(), l.y.data(), way.element, l.elements(), nullptr);
    l.check_output();
    activation_backward(how, l.x.data(), l.dy.data(), l.dx.data(), way.element, l.elements(), nullptr);
    l.check_input_gradient();
  }
}

TEST_CASE("pools' kernels compute what plain loops do", "[emulated]") {
  const Way way = any_way();
  std::vector<NamedCase> cases = cases_of({LayerKind::max_pool, LayerKind::average_pool});
  for (const LayerKind kind : {LayerKind::max_pool, LayerKind::average_pool}) {
    const Window overlapping{.kernel = {3, 3}, .stride = {2, 2}, .pad_before = {1, 1}, .pad_after = {1, 1}};
    Case wide = cases.front().value;
    wide.layer = pool_layer(kind, {16, 9, 6}, overlapping);
    wide.inputs = {uniform_array(2 * 16 * 9 * 6, 1)};
    wide.batch = 2;
    cases.push_back({"whole packs of channels", wide});
  }
  for (const NamedCase& named : cases) {
    CAPTURE(named.name);
    Layered l{named.value, way};
    const Window& w = l.c.layer.window;
    const PoolShape shape{.in = five(l.in, 1),
                          .out = five(l.out, 1),
                          .in_stride = five(l.x.strides(), 0),
                          .out_stride = five(l.y.strides(), 0),
                          .kernel = last_three(w.kernel, 1),
                          .stride = last_three(w.stride, 1),
                          .pad = last_three(w.pad_before, 0),
                          .largest = l.c.layer.kind == LayerKind::max_pool};
    std::vector<std::uint16_t> taps(l.y.elements());
    std::uint16_t* kept = shape.largest ? taps.data() : nullptr;
    pool_forward(shape, l.x.data(), l.y.data(), kept, way.element, nullptr);
    l.check_output();
    pool_backward(shape, l.dy.data(), l.dx.data(), kept, way.element, nullptr);
    // Rounding makes different numbers equal; the gradient goes to one of them.
    if (way.element == Element::f32 || !shape.largest) l.check_input_gradient();
  }
}

TEST_CASE("up-sampling's kernels compute what plain loops do", "[emulated]") {
  const Way way = any_way();
  for (const NamedCase& named : cases_of({LayerKind::up_sample})) {
    CAPTURE(named.name);
    Layered l{named.value, way};
    UpSampleShape shape;
    shape.in = five(l.in, 1);
    shape.in_stride = five(l.x.strides(), 0);
    shape.out_stride = five(l.y.strides(), 0);
    shape.factor = last_three(l.c.layer.window.kernel, 1);
    up_sample_forward(shape, l.x.data(), l.y.data(), way.element, nullptr);
    l.check_output();
    up_sample_backward(shape, l.dy.data(), l.dx.data(), way.element, nullptr);
    l.check_input_gradient();
  }
}

namespace {

/// One device's half of a case's samples: a range of the whole case's memory.
struct Part {
  Channels channels;
  std::size_t begin = 0;  ///< bytes

  void* in(const Memory& memory) const { return static_cast<char*>(memory.data()) + begin; }
};

Part part_of_device(const Layered& l, bool second) {
  Channels channels = l.channels();
  channels.outer /= 2;
  return {channels, second ? static_cast<std::size_t>(channels.elements()) * bytes_of(l.way.element) : 0};
}

void add(const std::vector<float>& one, std::vector<float>& sum) {
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += one[i];
}

}  // namespace

TEST_CASE("batch norm over two devices with half of the samples each equals the reference over all samples",
          "[emulated]") {
  const Way way = any_way();
  Case c = cases_of({LayerKind::batch_norm}).front().value;
  const std::int64_t channels = GENERATE(8, 5);  // whole packs of channels, or not
  c.layer = norm_layer(LayerKind::batch_norm, {channels, 4, 4});
  c.batch = 4;
  c.inputs = {uniform_array(static_cast<std::size_t>(4 * channels * 16), 1)};
  for (double& value : c.inputs[0]) value += 2;  // a mean other than zero
  for (std::size_t k = 0; k < 4; ++k)
    c.parameters[k] = uniform_array(channels, 20 + static_cast<std::uint32_t>(k));
  Layered l{c, way};
  const std::size_t count = channels;
  std::vector<float> scale = l.parameter(0), shift = l.parameter(1);
  const double elements = 1.0 * l.elements() / channels;
  struct Device {
    std::vector<float> mean, inverse, running, spread, sums;
  };
  std::vector<Device> devices(
      2, {std::vector<float>(count), std::vector<float>(count), std::vector<float>(count),
          std::vector<float>(count), std::vector<float>(2 * count)});
  const auto arrays = [&](Device& d) {
    return BatchNormArrays{scale.data(),     shift.data(),     d.mean.data(),
                           d.inverse.data(), d.running.data(), d.spread.data()};
  };

  std::vector<float> sums(2 * count), errors(2 * count);
  for (const bool second : {false, true}) {
    Device& d = devices[second];
    const Part part = part_of_device(l, second);
    synchronized_batch_norm_sums(part.channels, part.in(l.x), d.sums.data(), l.scratch, nullptr);
    add(d.sums, sums);
  }
  for (const bool second : {false, true}) {
    const Part part = part_of_device(l, second);
    synchronized_batch_norm_forward(part.channels, arrays(devices[second]), sums.data(), elements,
                                    part.in(l.x), part.in(l.y), nullptr);
  }
  l.check_output();
  CHECK(devices[0].mean == devices[1].mean);
  CHECK(devices[0].running[0] == Approx(0.1F * devices[0].mean[0]));

  for (const bool second : {false, true}) {
    Device& d = devices[second];
    const Part part = part_of_device(l, second);
    synchronized_batch_norm_sums_back(part.channels, arrays(d), part.in(l.x), part.in(l.dy), d.sums.data(),
                                      l.scratch, nullptr);
    add(d.sums, errors);
  }
  for (const bool second : {false, true}) {
    const Part part = part_of_device(l, second);
    synchronized_batch_norm_backward(part.channels, arrays(devices[second]), errors.data(), elements,
                                     part.in(l.x), part.in(l.dy), part.in(l.dx), nullptr);
  }
  const reference::Gradients expected = l.backward();
  check_near(l.dx.values(), expected.inputs[0], 2 * way.margin());
  const auto middle = errors.begin() + count;
  check_near({middle, errors.end()}, expected.parameters[0], 2 * way.margin());
  check_near({errors.begin(), middle}, expected.parameters[1], 2 * way.margin());
}
}  // namespace stepcast::test
