#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <numeric>

#include "check/cases.hpp"
#include "kernels/cudnn/cuda/sums.hpp"

namespace stepcast::test {

using namespace cudnn;  // whose kernels are tested

constexpr std::size_t kWorkspace = 1 << 16;  ///< floats

/// An array of any element type and layout, aligned like a GPU's memory.
class Memory {
 public:
  Memory(Shape shape, Element element, bool channels_last, const Array& values = {})
      : shape_(std::move(shape)), element_(element), strides_(shape_.size(), 1) {
    std::vector<std::size_t> inner_first;
    for (std::size_t d = shape_.size(); d-- > 0;) inner_first.push_back(d);
    if (channels_last && shape_.size() == 4) inner_first = {1, 3, 2, 0};
    std::int64_t stride = 1;
    for (const std::size_t d : inner_first) {
      strides_[d] = stride;
      stride *= shape_[d];
    }
    bytes_ = (stride * bytes_of(element_) + 15) / 16 * 16;
    data_.reset(static_cast<char*>(std::aligned_alloc(16, bytes_)));
    std::memset(data_.get(), 0, bytes_);
    for (std::size_t i = 0; i < values.size(); ++i) set(place(i), values[i]);
  }

  void* data() const { return data_.get(); }
  float* floats() const { return reinterpret_cast<float*>(data_.get()); }
  const std::vector<std::int64_t>& strides() const { return strides_; }
  std::size_t elements() const {
    return std::accumulate(shape_.begin(), shape_.end(), std::int64_t{1}, std::multiplies<>());
  }
  /// The values in row-major order.
  Array values() const {
    Array all;
    for (std::size_t i = 0; i < elements(); ++i) all.push_back(get(place(i)));
    return all;
  }

 private:
  std::size_t place(std::size_t index) const {
    std::size_t at = 0;
    for (std::size_t d = shape_.size(); d-- > 0;) {
      const std::size_t size = shape_[d];
      at += index % size * strides_[d];
      index /= size;
    }
    return at;
  }
  void set(std::size_t at, float value) {
    if (element_ == Element::f32) return void(floats()[at] = value);
    if (element_ == Element::f16)
      reinterpret_cast<__half*>(data_.get())[at] = __float2half_rn(value);
    else
      reinterpret_cast<__nv_bfloat16*>(data_.get())[at] = __float2bfloat16_rn(value);
  }
  double get(std::size_t at) const {
    if (element_ == Element::f32) return floats()[at];
    if (element_ == Element::f16) return __half2float(reinterpret_cast<const __half*>(data_.get())[at]);
    return __bfloat162float(reinterpret_cast<const __nv_bfloat16*>(data_.get())[at]);
  }

  struct Free {
    void operator()(char* memory) const { std::free(memory); }
  };
  Shape shape_;
  Element element_;
  std::vector<std::int64_t> strides_;
  std::size_t bytes_ = 0;
  std::unique_ptr<char, Free> data_;
};

inline Shape batched_shape(std::int64_t batch, const Shape& sample) {
  Shape shape{batch};
  shape.insert(shape.end(), sample.begin(), sample.end());
  return shape;
}

/// Layout and element type of a test's tensors, and the tolerance for rounding.
struct Way {
  Element element = Element::f32;
  bool channels_last = false;
  double margin() const {
    return element == Element::f32 ? 2e-5 : element == Element::f16 ? 4.0 / 1024 : 4.0 / 128;
  }
};

inline Way any_way() {
  return {GENERATE(Element::f32, Element::f16, Element::bf16), GENERATE(false, true)};
}

inline void check_near(const Array& found, const Array& expected, double margin) {
  REQUIRE(found.size() == expected.size());
  double size = 1;
  for (const double value : expected) size = std::max(size, std::abs(value));
  for (std::size_t i = 0; i < found.size(); ++i) CHECK(found[i] == Approx(expected[i]).margin(margin * size));
}

inline Array floats_of(const std::vector<float>& values) {
  return {values.begin(), values.end()};
}

/// Runs one of the cases that every backend is checked with, forward and backward, through the kernels.
struct Layered {
  const Case& c;
  Way way;
  Shape in = batched_shape(c.batch, c.layer.input), out = batched_shape(c.batch, c.layer.output);
  Memory x{in, way.element, way.channels_last, c.inputs[0]}, y{out, way.element, way.channels_last};
  Array slope = uniform_array(y.elements(), 99);
  Memory dy{out, way.element, way.channels_last, slope}, dx{in, way.element, way.channels_last};
  std::vector<float> memory = std::vector<float>(kWorkspace);
  Scratch scratch{memory.data(), memory.size() * sizeof(float)};

  std::int64_t elements() const { return x.elements(); }
  std::vector<float> parameter(std::size_t k) const { return as_floats(c.parameters.at(k)); }
  bool lies_last() const { return way.channels_last && in.size() == 4; }
  Channels channels() const {
    const std::int64_t count = in[1];
    if (lies_last()) return {elements() / count, count, 1, way.element};
    return {c.batch, count, elements() / (c.batch * count), way.element};
  }
  reference::Gradients backward() const { return reference::backward(c, slope); }
  void check_output() const { check_near(y.values(), reference::forward(c), way.margin()); }
  void check_input_gradient() const { check_near(dx.values(), backward().inputs.at(0), way.margin()); }
};

inline std::vector<NamedCase> cases_of(const std::vector<LayerKind>& kinds) {
  std::vector<NamedCase> chosen;
  for (const NamedCase& one : all_cases()) {
    for (const LayerKind kind : kinds) {
      if (one.value.layer.kind == kind) chosen.push_back(one);
    }
  }
  REQUIRE_FALSE(chosen.empty());
  return chosen;
}

}  // namespace stepcast::test
