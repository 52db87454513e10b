#include "kernels/cudnn/runtime/tensor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>
#include <stdexcept>

#include "core/error.hpp"
#include "kernels/network/device_memory.hpp"

namespace stepcast::cudnn {

namespace {

/// Dimensions extended to kMoveDims by filling in front.
std::array<std::int64_t, kMoveDims> as_box(const std::vector<std::int64_t>& values, std::int64_t fill) {
  if (values.size() > kMoveDims) throw std::invalid_argument("tensor: expected at most 5 dimensions");
  std::array<std::int64_t, kMoveDims> box{};
  box.fill(fill);
  std::copy(values.begin(), values.end(), box.end() - values.size());
  return box;
}

}  // namespace

std::vector<std::int64_t> strides_of(const Shape& shape, Order order) {
  if (order == Order::row_major || shape.size() < 3) return row_major_strides(shape);
  Shape channels_last{shape[0]};
  channels_last.insert(channels_last.end(), shape.begin() + 2, shape.end());
  channels_last.push_back(shape[1]);
  const std::vector<std::int64_t> strides = row_major_strides(channels_last);
  std::vector<std::int64_t> result{strides.front(), strides.back()};
  result.insert(result.end(), strides.begin() + 1, strides.end() - 1);
  return result;
}

std::int64_t element_count(const Shape& shape) {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
}

CudnnTensor::CudnnTensor(std::shared_ptr<Device> device, Shape shape, Element element, Order order)
    : device_(std::move(device)), shape_(std::move(shape)), element_(element), order_(order) {
  memory_ = allocate_bytes(elements() * bytes_of(element_), device_->stream.get());
}

CudnnTensor::CudnnTensor(const CudnnTensor& owner, Shape shape)
    : device_(owner.device_), shape_(std::move(shape)), element_(owner.element_), memory_(owner.memory_) {}

CudnnTensor CudnnTensor::within_pass(std::shared_ptr<Device> device, Shape shape, Element element) {
  CudnnTensor tensor;
  tensor.device_ = std::move(device);
  tensor.shape_ = std::move(shape);
  tensor.element_ = element;
  tensor.memory_ = tensor.device_->memory_within_pass(tensor.elements() * bytes_of(element));
  return tensor;
}

std::int64_t CudnnTensor::elements() const {
  return element_count(shape_);
}

std::vector<std::int64_t> CudnnTensor::strides() const {
  return strides_of(shape_, order_);
}

bool CudnnTensor::is_stored_as(Order order) const {
  const auto mine = strides(), other = strides_of(shape_, order);
  for (std::size_t i = 0; i < shape_.size(); ++i) {
    if (shape_[i] != 1 && mine[i] != other[i]) return false;
  }
  return true;
}

CudnnTensor CudnnTensor::under(Order order) const {
  CudnnTensor same = *this;
  same.order_ = order;
  return same;
}

std::vector<float> CudnnTensor::read() const {
  const CudnnTensor plain(device_, shape_, Element::f32);
  const cudaStream_t stream = device_->stream.get();
  move_elements(move_between(*this, plain), data(), plain.data(), stream);
  return download(static_cast<const float*>(plain.data()), elements(), stream);
}

void CudnnTensor::write(const std::vector<float>& values) {
  if (std::ssize(values) != elements()) {
    throw std::invalid_argument("write: expected as many values as the shape has elements");
  }
  const CudnnTensor plain(device_, shape_, Element::f32);
  const cudaStream_t stream = device_->stream.get();
  upload(values, static_cast<float*>(plain.data()), stream);
  move_elements(move_between(plain, *this), plain.data(), data(), stream);
  check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
}

Move move_between(const CudnnTensor& from, const CudnnTensor& to) {
  return {.size = as_box(from.shape(), 1),
          .from_stride = as_box(from.strides(), 0),
          .to_stride = as_box(to.strides(), 0),
          .from_element = from.element(),
          .to_element = to.element()};
}

Move move_out_of(const CudnnTensor& from) {
  return {.size = as_box(from.shape(), 1),
          .from_stride = as_box(from.strides(), 0),
          .to_stride = as_box(row_major_strides(from.shape()), 0),
          .from_element = from.element(),
          .to_element = Element::f32};
}

std::vector<float> download(const float* from, std::size_t elements, cudaStream_t stream) {
  std::vector<float> values(elements);
  check(cudaMemcpyAsync(values.data(), from, elements * sizeof(float), cudaMemcpyDeviceToHost, stream),
        "cudaMemcpyAsync");
  check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
  return values;
}

void upload(const std::vector<float>& values, float* to, cudaStream_t stream) {
  check(cudaMemcpyAsync(to, values.data(), values.size() * sizeof(float), cudaMemcpyHostToDevice, stream),
        "cudaMemcpyAsync");
  check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
}

cudnnDataType_t cudnn_type(Element element) {
  if (element == Element::f16) return CUDNN_DATA_HALF;
  return element == Element::bf16 ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_FLOAT;
}

Shape as_image(const Shape& shape) {
  if (shape.size() == 2) return {shape[0], shape[1], 1, 1};
  if (shape.size() == 3) return {shape[0], shape[1], 1, shape[2]};
  return shape;
}

TensorDesc describe(const CudnnTensor& tensor, const Shape& as) {
  return describe(tensor.element(), as, tensor.order());
}

TensorDesc describe(Element element, const Shape& as, Order order) {
  if (element_count(as) > std::numeric_limits<std::int32_t>::max())
    throw LimitError(
        fmt::format("cuDNN's calls take tensors of less than 2^31 elements, and this one has {} "
                    "({}); take a smaller batch",
                    element_count(as), fmt::join(as, "x")));
  auto desc = make_owned<TensorDesc>(cudnnCreateTensorDescriptor, "cudnnCreateTensorDescriptor");
  const std::vector<std::int64_t> strides = strides_of(as, order);
  const std::vector<int> dims(as.begin(), as.end()), steps(strides.begin(), strides.end());
  check(cudnnSetTensorNdDescriptor(desc.get(), cudnn_type(element), dims.size(), dims.data(), steps.data()),
        "cudnnSetTensorNdDescriptor");
  return desc;
}

namespace {

constexpr float kOne = 1, kZero = 0;
/// Alignment given to the heuristic [bytes]; its default is 256, but parameters start at multiples of 64
/// bytes.
constexpr std::uint32_t kAlignment = 16;

using Preference = Owned<cublasLtMatmulPreference_t, cublasLtMatmulPreferenceDestroy>;

/// The layout of a row-major matrix for cuBLASLt, whose matrices are column-major: the transposed matrix
/// {columns, rows}.
MatrixLayout layout_of(const Matrix& m) {
  return make_owned<MatrixLayout>(
      [&](cublasLtMatrixLayout_t* made) {
        return cublasLtMatrixLayoutCreate(made, m.type, m.columns, m.rows, m.columns);
      },
      "cublasLtMatrixLayoutCreate");
}

template <class Value>
void set(cublasLtMatmulDesc_t desc, cublasLtMatmulDescAttributes_t which, const Value& value) {
  check(cublasLtMatmulDescSetAttribute(desc, which, &value, sizeof(value)), "cublasLtMatmulDescSetAttribute");
}

template <class Value>
void set(cublasLtMatmulPreference_t preference, cublasLtMatmulPreferenceAttributes_t which,
         const Value& value) {
  check(cublasLtMatmulPreferenceSetAttribute(preference, which, &value, sizeof(value)),
        "cublasLtMatmulPreferenceSetAttribute");
}

Preference preference_within(std::uint64_t workspace) {
  auto preference = make_owned<Preference>(cublasLtMatmulPreferenceCreate, "cublasLtMatmulPreferenceCreate");
  set(preference.get(), CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, workspace);
  for (const auto which :
       {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES}) {
    set(preference.get(), which, kAlignment);
  }
  return preference;
}

cublasOperation_t operation(Transpose transpose) {
  return transpose == Transpose::yes ? CUBLAS_OP_T : CUBLAS_OP_N;
}

}  // namespace

ProductDescriptors describe_product(const ProductShape& shape, cublasComputeType_t compute,
                                    const void* bias) {
  ProductDescriptors made{
      make_owned<MatmulDesc>(
          [&](cublasLtMatmulDesc_t* desc) { return cublasLtMatmulDescCreate(desc, compute, CUDA_R_32F); },
          "cublasLtMatmulDescCreate"),
      layout_of(shape.b), layout_of(shape.a), layout_of(shape.c)};
  set(made.product.get(), CUBLASLT_MATMUL_DESC_TRANSA, operation(shape.b_transposed));
  set(made.product.get(), CUBLASLT_MATMUL_DESC_TRANSB, operation(shape.a_transposed));
  if (shape.bias) {
    set(made.product.get(), CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
    set(made.product.get(), CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias);
  }
  return made;
}

// The heuristic reads the alignment of biases from the pointer. Parameters start at multiples of 64 bytes,
// and the pointer given here has no larger alignment than that.
Matmul::Matmul(std::shared_ptr<Device> device, const ProductShape& shape)
    : device_(std::move(device)),
      described_(describe_product(shape, device_->cublas_compute(),
                                  static_cast<const char*>(device_->workspace.data()) + 64)) {
  const std::size_t workspace = std::min<std::size_t>(device_->workspace.bytes, std::size_t{64} << 20);
  const Preference preference = preference_within(workspace);
  int found = 0;
  check(cublasLtMatmulAlgoGetHeuristic(device_->lt.get(), described_.product.get(), described_.first.get(),
                                       described_.second.get(), described_.result.get(),
                                       described_.result.get(), preference.get(), 1, &chosen_, &found),
        "cublasLtMatmulAlgoGetHeuristic");
  if (found == 0) throw GpuError("cublasLtMatmulAlgoGetHeuristic: no algorithm for this product");
  device_->workspace.use(chosen_.workspaceSize);
}

void Matmul::run(const void* a, const void* b, void* c, const void* bias) const {
  if (bias != nullptr) set(described_.product.get(), CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias);
  check(
      cublasLtMatmul(device_->lt.get(), described_.product.get(), &kOne, b, described_.first.get(), a,
                     described_.second.get(), &kZero, c, described_.result.get(), c, described_.result.get(),
                     &chosen_.algo, device_->workspace.data(), chosen_.workspaceSize, device_->stream.get()),
      "cublasLtMatmul");
}

}  // namespace stepcast::cudnn
