#include "layered.hpp"

namespace stepcast::test {
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
