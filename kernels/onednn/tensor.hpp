#pragma once

#include <dnnl.hpp>
#include <memory>

#include "kernels/tensor.hpp"

namespace stepcast::onednn {

using Desc = dnnl::memory::desc;

/// The CPU as oneDNN sees it; one for a network.
struct Library {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
};

/// A tensor in any of oneDNN's layouts. The logical dimensions are {batch, shape of a sample...}.
class OnednnTensor final : public Tensor {
 public:
  /// Own zeroed memory.
  OnednnTensor(std::shared_ptr<Library> library, const Desc& desc);
  /// The memory of another tensor, seen through another descriptor of the same size.
  OnednnTensor(const OnednnTensor& owner, const Desc& desc);

  const Shape& shape() const override { return shape_; }
  std::vector<float> read() const override;
  void write(const std::vector<float>& values) override;
  void copy_to(float* values) const override;
  void copy_from(const float* values) override;

  const dnnl::memory& memory() const { return memory_; }
  Desc desc() const { return memory_.get_desc(); }
  float* data() const { return static_cast<float*>(memory_.get_data_handle()); }
  /// With the padding of blocked layouts.
  std::size_t stored_elements() const { return desc().get_size() / sizeof(float); }

 private:
  std::shared_ptr<Library> library_;
  std::shared_ptr<float> storage_;
  dnnl::memory memory_;
  Shape shape_;
};

/// Row-major layout of these dimensions, fp32.
Desc plain(const Shape& dims);
/// The layout that a convolution would give its output of these dimensions; row-major where none could.
Desc as_convolved(const Library& library, const Shape& dims);
/// Layout to be chosen by a primitive.
Desc any(const Shape& dims);
std::int64_t element_count(const Shape& shape);
Shape dims_of(const Desc& desc);

/// Copies between `memory` and row-major values, which `as` describes (dimensions of `memory`).
std::vector<float> read_as(const Library& library, const dnnl::memory& memory, const Desc& as);
void write_as(const Library& library, const dnnl::memory& memory, const Desc& as,
              const std::vector<float>& values);

/// True if the last dimension is contiguous and the others are packed around it in some order, so that the
/// memory is a dense matrix of rows.
bool has_rows(const Desc& desc);
/// The same order of rows, each `length` long.
Desc with_row_length(const Desc& desc, std::int64_t length);
/// The rows in the order of memory: {rows, length}.
dnnl::memory as_matrix(const dnnl::memory& memory);

}  // namespace stepcast::onednn
