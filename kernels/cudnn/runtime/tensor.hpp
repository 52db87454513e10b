#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "kernels/cudnn/cuda/moves.hpp"
#include "kernels/cudnn/runtime/device.hpp"
#include "kernels/network/backend.hpp"

namespace stepcast::cudnn {

/// Memory layout of a tensor: row-major, or channels (dimension 1) innermost.
enum class Order { row_major, channels_last };

/// A tensor on the GPU; copies share its memory. Dimensions are {batch, shape of a sample...}.
class CudnnTensor final : public Tensor {
 public:
  CudnnTensor() = default;
  /// A tensor with zeroed memory of its own.
  CudnnTensor(std::shared_ptr<Device> device, Shape shape, Element element, Order order = Order::row_major);
  /// A view of another tensor's memory with another shape of as many elements.
  CudnnTensor(const CudnnTensor& owner, Shape shape);
  /// A row-major tensor on memory that others use too (Device::memory_within_pass).
  static CudnnTensor within_pass(std::shared_ptr<Device> device, Shape shape, Element element);

  const Shape& shape() const override { return shape_; }
  std::vector<float> read() const override;
  void write(const std::vector<float>& values) override;

  Element element() const { return element_; }
  Order order() const { return order_; }
  std::int64_t elements() const;
  void* data() const { return memory_.get(); }
  /// Strides along each dimension [elements].
  std::vector<std::int64_t> strides() const;
  /// True if the elements are stored in the same order as in a tensor with this layout.
  bool is_stored_as(Order order) const;
  /// The same memory under another layout in which the elements are stored alike, such as that of an image
  /// with one channel: libraries tell layouts by strides, so tensors of one call must have those of one.
  CudnnTensor under(Order order) const;

 private:
  std::shared_ptr<Device> device_;
  Shape shape_;
  Element element_ = Element::f32;
  Order order_ = Order::row_major;
  std::shared_ptr<void> memory_;
};

std::int64_t element_count(const Shape& shape);
/// Strides of a packed tensor [elements].
std::vector<std::int64_t> strides_of(const Shape& shape, Order order);

/// A copy of all elements into a tensor of the same shape; layouts and element types may differ.
Move move_between(const CudnnTensor& from, const CudnnTensor& to);

/// A copy of all elements into row-major fp32 memory.
Move move_out_of(const CudnnTensor& from);

/// Copies between the device and the host, in the order of memory; returns when the copy is done.
std::vector<float> download(const float* from, std::size_t elements, cudaStream_t stream);
void upload(const std::vector<float>& values, float* to, cudaStream_t stream);

using TensorDesc = Owned<cudnnTensorDescriptor_t, cudnnDestroyTensorDescriptor>;

/// cuDNN's descriptor of a tensor with the shape `as`, which has at least 4 dimensions.
/// @throws LimitError for 2^31 elements and more, which the calls that take these descriptors refuse
TensorDesc describe(const CudnnTensor& tensor, const Shape& as);
TensorDesc describe(Element element, const Shape& as, Order order);
cudnnDataType_t cudnn_type(Element element);

/// Returns {n, c, 1, l} for {n, c, l} and {n, c, 1, 1} for {n, c}, because cuDNN requires 2 or 3 spatial
/// dimensions.
Shape as_image(const Shape& shape);

using MatmulDesc = Owned<cublasLtMatmulDesc_t, cublasLtMatmulDescDestroy>;
using MatrixLayout = Owned<cublasLtMatrixLayout_t, cublasLtMatrixLayoutDestroy>;

/// A row-major matrix of `rows` contiguous rows with `columns` elements each.
struct Matrix {
  std::int64_t rows = 0, columns = 0;
  cudaDataType_t type = CUDA_R_32F;
};

enum class Transpose { no, yes };

/// The product c = a' b' (+ bias to every row), where a' and b' may be transposed.
struct ProductShape {
  Matrix a, b, c;
  Transpose a_transposed = Transpose::no, b_transposed = Transpose::no;
  bool bias = false;  ///< add a bias with one number per column of c, in c's element type
};

/// cuBLASLt's descriptors of a product. Its matrices are column-major, so it computes c^T = b'^T a'^T:
/// `first` is that of b.
struct ProductDescriptors {
  MatmulDesc product;
  MatrixLayout first, second, result;
};
/// Needs no GPU. @param bias  any address with the alignment of biases, for the heuristic; used with a bias
ProductDescriptors describe_product(const ProductShape& shape, cublasComputeType_t compute, const void* bias);

/// A product of row-major matrices by cuBLASLt, with the first choice of its heuristic.
class Matmul {
 public:
  Matmul(std::shared_ptr<Device> device, const ProductShape& shape);

  void run(const void* a, const void* b, void* c, const void* bias = nullptr) const;

 private:
  std::shared_ptr<Device> device_;
  ProductDescriptors described_;
  cublasLtMatmulHeuristicResult_t chosen_{};
};

/// Spatial sizes extended to three by filling in front.
inline std::array<std::int64_t, 3> last_three(const std::vector<std::int64_t>& sizes, std::int64_t fill) {
  std::array<std::int64_t, 3> result{fill, fill, fill};
  std::copy(sizes.begin(), sizes.end(), result.end() - sizes.size());
  return result;
}

/// Sizes or strides of {n, c, spatial...} as {n, c, d, h, w}, with spatial ones extended by filling in front.
inline std::array<std::int64_t, 5> five(const std::vector<std::int64_t>& values, std::int64_t fill) {
  std::array<std::int64_t, 5> result{values.at(0), values.at(1), fill, fill, fill};
  std::copy(values.begin() + 2, values.end(), result.end() - (values.size() - 2));
  return result;
}

}  // namespace stepcast::cudnn
