#pragma once

#include <array>

#include "kernels/cudnn/device.hpp"
#include "kernels/cudnn/moves.hpp"
#include "kernels/tensor.hpp"

namespace stepcast::cudnn {

/// Order of a tensor's elements: row-major, or channels (dimension 1) innermost.
enum class Order { row_major, channels_last };

/// A tensor on the GPU: a handle of shared memory. Dimensions are {batch, shape of a sample...}.
class CudnnTensor final : public Tensor {
 public:
  CudnnTensor() = default;
  /// Own zeroed memory.
  CudnnTensor(std::shared_ptr<Device> device, Shape shape, Element element, Order order = Order::row_major);
  /// The memory of another tensor of as many elements, seen through another shape.
  CudnnTensor(const CudnnTensor& owner, Shape shape);

  const Shape& shape() const override { return shape_; }
  std::vector<float> read() const override;
  void write(const std::vector<float>& values) override;

  Element element() const { return element_; }
  Order order() const { return order_; }
  std::size_t elements() const;
  void* data() const { return memory_.get(); }
  /// Distance in memory of neighbours along each dimension [elements].
  std::vector<std::int64_t> strides() const;
  /// The same bytes in the same order as a tensor of that order would have them.
  bool lies_as(Order order) const;

 private:
  std::shared_ptr<Device> device_;
  Shape shape_;
  Element element_ = Element::f32;
  Order order_ = Order::row_major;
  std::shared_ptr<void> memory_;
};

std::int64_t element_count(const Shape& shape);

/// Copy of all elements into a tensor of the same shape, whatever the layouts and elements.
Move move_between(const CudnnTensor& from, const CudnnTensor& to);

/// Copy of all elements into row-major fp32.
Move move_out_of(const CudnnTensor& from);

/// Between the device and the host, in the memory's order. Waits until it is done.
std::vector<float> download(const float* from, std::size_t elements, cudaStream_t stream);
void upload(const std::vector<float>& values, float* to, cudaStream_t stream);

using TensorDesc = Owned<cudnnTensorDescriptor_t, cudnnDestroyTensorDescriptor>;

/// For cuDNN, with at least 4 dimensions; `type` is that of the tensor's elements.
TensorDesc describe(const CudnnTensor& tensor, const Shape& as);
cudnnDataType_t cudnn_type(Element element);

/// {n, c, l} as {n, c, 1, l} and {n, c} as {n, c, 1, 1}: cuDNN wants 2 or 3 spatial dimensions.
Shape as_image(const Shape& shape);

}  // namespace stepcast::cudnn
