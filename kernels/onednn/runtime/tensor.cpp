#include "kernels/onednn/runtime/tensor.hpp"

#include <algorithm>
#include <numeric>
#include <stdexcept>

#include "kernels/network/device_memory.hpp"

namespace stepcast::onednn {
namespace {

constexpr auto kFloat = dnnl::memory::data_type::f32;

Shape strides_of(const Desc& desc) {
  return {desc.data.format_desc.blocking.strides, desc.data.format_desc.blocking.strides + desc.data.ndims};
}

}  // namespace

OnednnTensor::OnednnTensor(std::shared_ptr<Library> library, const Desc& desc)
    : library_(std::move(library)),
      storage_(allocate_floats(desc.get_size() / sizeof(float))),
      memory_(desc, library_->engine, storage_.get()),
      shape_(dims_of(desc)) {}

OnednnTensor::OnednnTensor(const OnednnTensor& owner, const Desc& desc)
    : library_(owner.library_),
      storage_(owner.storage_),
      memory_(desc, library_->engine, storage_.get()),
      shape_(dims_of(desc)) {}

std::vector<float> OnednnTensor::read() const {
  return read_as(*library_, memory_, plain(shape_));
}

void OnednnTensor::write(const std::vector<float>& values) {
  write_as(*library_, memory_, plain(shape_), values);
}

void OnednnTensor::copy_to(float* values) const {
  dnnl::memory source = memory_;  // copies only the handle
  dnnl::memory target(plain(shape_), library_->engine, values);
  dnnl::reorder(source, target).execute(library_->stream, source, target);
}

void OnednnTensor::copy_from(const float* values) {
  dnnl::memory source(plain(shape_), library_->engine,
                      const_cast<float*>(values));  // a reorder only reads its source
  dnnl::reorder(source, memory_).execute(library_->stream, source, memory_);
}

Desc plain(const Shape& dims) {
  Shape strides(dims.size(), 1);
  for (std::size_t i = dims.size() - 1; i > 0; --i) strides[i - 1] = strides[i] * dims[i];
  return {dims, kFloat, strides};
}

Desc any(const Shape& dims) {
  return {dims, kFloat, dnnl::memory::format_tag::any};
}

Desc as_convolved(const Library& library, const Shape& dims) {
  if (dims.size() != 4 && dims.size() != 5) return plain(dims);
  using Convolution = dnnl::convolution_forward;
  Shape weights(dims.size(), 1);
  weights[0] = weights[1] = dims[1];
  const Shape ones(dims.size() - 2, 1), zeros(dims.size() - 2, 0);
  const Convolution::desc asked(dnnl::prop_kind::forward_training, dnnl::algorithm::convolution_direct,
                                any(dims), any(weights), any(dims), ones, zeros, zeros);
  return Convolution::primitive_desc(asked, library.engine).dst_desc();
}

std::int64_t element_count(const Shape& shape) {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
}

Shape dims_of(const Desc& desc) {
  return desc.dims();
}

std::vector<float> read_as(const Library& library, const dnnl::memory& memory, const Desc& as) {
  std::vector<float> values(element_count(dims_of(as)));
  dnnl::memory source = memory;  // copies only the handle
  dnnl::memory target(as, library.engine, values.data());
  dnnl::reorder(source, target).execute(library.stream, source, target);
  return values;
}

void write_as(const Library& library, const dnnl::memory& memory, const Desc& as,
              const std::vector<float>& values) {
  if (std::ssize(values) != element_count(dims_of(as))) {
    throw std::invalid_argument("write: expected as many values as the shape has elements");
  }
  std::vector<float> copy = values;  // oneDNN requires memory that is not const
  dnnl::memory source(as, library.engine, copy.data());
  dnnl::memory target = memory;  // copies only the handle
  dnnl::reorder(source, target).execute(library.stream, source, target);
}

bool has_rows(const Desc& desc) {
  if (desc.data.format_kind != dnnl_blocked || desc.data.format_desc.blocking.inner_nblks != 0) return false;
  const Shape dims = dims_of(desc);
  const Shape strides = strides_of(desc);
  std::vector<std::size_t> order;  // dimensions larger than 1, from the innermost
  for (std::size_t i = 0; i + 1 < dims.size(); ++i) {
    if (dims[i] != 1) order.push_back(i);
  }
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return strides[a] < strides[b]; });
  if (dims.back() != 1) order.insert(order.begin(), dims.size() - 1);
  std::int64_t expected = 1;
  for (const std::size_t i : order) {
    if (strides[i] != expected) return false;
    expected *= dims[i];
  }
  return true;
}

Desc row_layout(const Desc& desc) {
  return has_rows(desc) ? desc : plain(dims_of(desc));
}

Desc with_row_length(const Desc& desc, std::int64_t length) {
  Shape dims = dims_of(desc);
  Shape strides = strides_of(desc);
  for (std::size_t i = 0; i + 1 < dims.size(); ++i) strides[i] = strides[i] / dims.back() * length;
  dims.back() = length;
  strides.back() = 1;
  return {dims, kFloat, strides};
}

dnnl::memory as_matrix(const dnnl::memory& memory) {
  const Shape dims = dims_of(memory.get_desc());
  return {plain({element_count(dims) / dims.back(), dims.back()}), memory.get_engine(),
          memory.get_data_handle()};
}

}  // namespace stepcast::onednn
