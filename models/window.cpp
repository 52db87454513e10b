#include "models/window.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace stepcast {
namespace {

constexpr std::int64_t kLargestSize = 1'000'000;  // keeps products of shapes far from overflow

void pad_same(const Shape& input, Window& window) {
  for (std::size_t i = 0; i < window.kernel.size(); ++i) {
    const std::int64_t positions = (input[i + 1] + window.stride[i] - 1) / window.stride[i];
    const std::int64_t covered = (positions - 1) * window.stride[i] + window.kernel[i];
    const std::int64_t total = std::max<std::int64_t>(0, covered - input[i + 1]);
    window.pad_before[i] = total / 2;
    window.pad_after[i] = total - total / 2;
  }
}

void read_pad(const YamlValue& pad, const Shape& input, Window& window) {
  const std::size_t dimensions = window.kernel.size();
  if (pad.is(YamlNode::Kind::scalar) && pad.node().text == "same") {
    pad_same(input, window);
  } else if (pad.is(YamlNode::Kind::mapping)) {
    const YamlMap sides = pad.map({"before", "after"});
    window.pad_before = per_dimension(sides.at("before"), dimensions, 0);
    window.pad_after = per_dimension(sides.at("after"), dimensions, 0);
  } else {
    window.pad_before = window.pad_after = per_dimension(pad, dimensions, 0);
  }
}

void check_fits(const YamlValue& kernel, const Shape& input, const Window& window) {
  for (std::size_t i = 0; i < window.kernel.size(); ++i) {
    const std::int64_t padded = input[i + 1] + window.pad_before[i] + window.pad_after[i];
    if (window.kernel[i] > padded) {
      kernel.refuse(
          fmt::format("a kernel of {} does not fit into a padded input of {}", window.kernel[i], padded));
    }
  }
}

}  // namespace

std::vector<std::int64_t> per_dimension(const YamlValue& value, std::size_t dimensions, std::int64_t low) {
  if (!value.is(YamlNode::Kind::sequence)) {
    return std::vector<std::int64_t>(dimensions, value.integer(low, kLargestSize));
  }
  std::vector<std::int64_t> sizes;
  for (const YamlValue& item : value.list()) sizes.push_back(item.integer(low, kLargestSize));
  if (sizes.size() != dimensions) {
    value.refuse(
        fmt::format("expected {} integers, one a spatial dimension, got {}", dimensions, sizes.size()));
  }
  return sizes;
}

Window read_window(const YamlMap& yaml, const Shape& input, DefaultStride default_stride) {
  const std::size_t dimensions = input.size() - 1;
  Window window;
  const YamlValue kernel = yaml.at("kernel", "an integer >= 1");
  window.kernel = per_dimension(kernel, dimensions, 1);
  window.stride.assign(dimensions, 1);
  if (default_stride == DefaultStride::kernel) window.stride = window.kernel;
  if (const auto stride = yaml.maybe("stride")) window.stride = per_dimension(*stride, dimensions, 1);
  window.pad_before.assign(dimensions, 0);
  window.pad_after.assign(dimensions, 0);
  if (const auto pad = yaml.maybe("pad")) read_pad(*pad, input, window);
  check_fits(kernel, input, window);
  return window;
}

}  // namespace stepcast
