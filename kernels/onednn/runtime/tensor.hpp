#pragma once

#include <dnnl.hpp>
#include <memory>

#include "kernels/network/backend.hpp"

namespace stepcast::onednn {

using Desc = dnnl::memory::desc;

/// oneDNN's engine and stream for the processor; each backend has one.
struct Library {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
};

/// A tensor in any of oneDNN's layouts. The logical dimensions are {batch, shape of a sample...}.
class OnednnTensor final : public Tensor {
 public:
  /// A tensor with zeroed memory of its own.
  OnednnTensor(std::shared_ptr<Library> library, const Desc& desc);
  /// A view of another tensor's memory through another descriptor of the same size.
  OnednnTensor(const OnednnTensor& owner, const Desc& desc);

  const Shape& shape() const override { return shape_; }
  std::vector<float> read() const override;
  void write(const std::vector<float>& values) override;
  void copy_to(float* values) const override;
  void copy_from(const float* values) override;

  const dnnl::memory& memory() const { return memory_; }
  Desc desc() const { return memory_.get_desc(); }
  float* data() const { return static_cast<float*>(memory_.get_data_handle()); }
  /// Number of elements in memory, including the padding of blocked layouts.
  std::size_t stored_elements() const { return desc().get_size() / sizeof(float); }

 private:
  std::shared_ptr<Library> library_;
  std::shared_ptr<float> storage_;
  dnnl::memory memory_;
  Shape shape_;
};

/// Row-major layout of these dimensions, fp32.
Desc plain(const Shape& dims);
/// The layout that a convolution would choose for an output of these dimensions; row-major if no convolution
/// has such an output.
Desc as_convolved(const Library& library, const Shape& dims);
/// A layout that a primitive chooses.
Desc any(const Shape& dims);
std::int64_t element_count(const Shape& shape);
Shape dims_of(const Desc& desc);

/// Copies values out of `memory` in the order that `as` describes (with the dimensions of `memory`).
std::vector<float> read_as(const Library& library, const dnnl::memory& memory, const Desc& as);
/// Copies values, whose order `as` describes, into `memory`.
void write_as(const Library& library, const dnnl::memory& memory, const Desc& as,
              const std::vector<float>& values);

/// True if the last dimension is contiguous and the others are packed around it in some order, so that the
/// memory is a dense matrix of rows.
bool has_rows(const Desc& desc);
/// `desc` itself if it has rows, else a row-major layout of the same shape.
Desc row_layout(const Desc& desc);
/// A descriptor with the same order of rows, whose rows have another length.
Desc with_row_length(const Desc& desc, std::int64_t length);
/// A view of the memory as a row-major matrix {rows, length}.
dnnl::memory as_matrix(const dnnl::memory& memory);

}  // namespace stepcast::onednn
