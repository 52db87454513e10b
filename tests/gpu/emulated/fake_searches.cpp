#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <set>

#include "fake_cudnn.hpp"
#include "fake_streams.hpp"

// Fakes of cuDNN's searches for convolution algorithms and of its questions for workspaces. A search reports
// several results, of which some must not be taken.

using namespace stepcast::fake;

namespace {

/// The strides of packed NCHW or NHWC.
Sizes packed(const Sizes& dims, bool channels_last) {
  Sizes strides(dims.size());
  int stride = channels_last ? dims[1] : 1;
  for (std::size_t i = dims.size(); i-- > 2;) {
    strides[i] = stride;
    stride *= dims[i];
  }
  strides[1] = channels_last ? 1 : stride;
  strides[0] = channels_last ? stride : stride * dims[1];
  return strides;
}

bool is_packed(const Tensor& one, bool channels_last) {
  return one.strides == packed(one.dims, channels_last);
}

bool are_packed(const Tensor& x, const Tensor& w, const Tensor& y, bool channels_last) {
  return is_packed(x, channels_last) && is_packed(w, channels_last) && is_packed(y, channels_last);
}

/// A search fails on inputs of zeros: it would measure another clock than data do.
bool is_drawn(const Tensor& one, const void* memory) {
  const auto* bytes = static_cast<const char*>(memory);
  return std::any_of(bytes, bytes + one.bytes(), [](char byte) { return byte != 0; });
}

/// True for the first search with this memory for results: it times the loading of kernels as well.
bool is_first_search(const void* memory) {
  static std::mutex gate;
  static std::set<const void*> known;
  const std::lock_guard lock(gate);
  return known.insert(memory).second;
}

std::atomic<int> asked{0};

template <class Performance>
cudnnStatus_t found(bool good, const Tensor& result, void* memory, int* count, Performance* results) {
  using Algorithm = decltype(Performance::algo);
  struct Report {
    int algorithm;
    cudnnMathType_t math;
    cudnnStatus_t status;
    float milliseconds;
  };
  const auto status = good ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_NOT_SUPPORTED;
  const Report reports[] = {{kFails, CUDNN_FMA_MATH, CUDNN_STATUS_NOT_SUPPORTED, 0.1F},
                            {kDirect, CUDNN_DEFAULT_MATH, status, 1},
                            {kTooLarge, CUDNN_FMA_MATH, status, 0.5F},
                            {kDirect, CUDNN_TENSOR_OP_MATH, status, 2},
                            {kSlow, CUDNN_FMA_MATH, status, is_first_search(memory) ? 3.F : 8.F},
                            {kDirect, CUDNN_FMA_MATH, status, 4}};
  ++asked;
  std::memset(memory, 0xff, result.bytes());
  *count = 0;
  for (const Report& one : reports) {
    Performance& made = results[(*count)++];
    made = {};
    made.algo = static_cast<Algorithm>(one.algorithm);
    made.mathType = one.math;
    made.status = one.status;
    made.time = one.milliseconds;
    made.memory = workspace_of(one.algorithm, one.math);
  }
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t workspace(const Tensor& x, const Tensor& w, const Convolution& c, const Tensor& y,
                        int algorithm, std::size_t* bytes) {
  *bytes = workspace_of(algorithm, c.math);
  return algorithm != kFails && has_algorithm(x, w, y) ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_NOT_SUPPORTED;
}

}  // namespace

int stepcast::fake::searches() {
  return asked;
}

bool stepcast::fake::has_one_layout(const Tensor& x, const Tensor& w, const Tensor& y) {
  return are_packed(x, w, y, false) || are_packed(x, w, y, true);
}

bool stepcast::fake::has_algorithm(const Tensor& x, const Tensor& w, const Tensor& y) {
  const bool even = x.dims[1] % 2 == 0 && y.dims[1] % 2 == 0;
  return are_packed(x, w, y, false) || (are_packed(x, w, y, true) && (even || x.type == CUDNN_DATA_FLOAT));
}

cudnnStatus_t cudnnFindConvolutionForwardAlgorithmEx(cudnnHandle_t handle, const cudnnTensorDescriptor_t x,
                                                     const void* in, const cudnnFilterDescriptor_t w,
                                                     const void* filter, const cudnnConvolutionDescriptor_t,
                                                     const cudnnTensorDescriptor_t y, void* to, const int,
                                                     int* count, cudnnConvolutionFwdAlgoPerf_t* results,
                                                     void*, std::size_t) {
  stepcast::fake::drain_stream_of(handle);
  if (!is_drawn(of(x), in) || !is_drawn(of(w), filter)) return CUDNN_STATUS_EXECUTION_FAILED;
  return found(has_algorithm(of(x), of(w), of(y)), of(y), to, count, results);
}
cudnnStatus_t cudnnFindConvolutionBackwardDataAlgorithmEx(
    cudnnHandle_t handle, const cudnnFilterDescriptor_t w, const void* filter,
    const cudnnTensorDescriptor_t dy, const void* errors, const cudnnConvolutionDescriptor_t,
    const cudnnTensorDescriptor_t dx, void* to, const int, int* count,
    cudnnConvolutionBwdDataAlgoPerf_t* results, void*, std::size_t) {
  stepcast::fake::drain_stream_of(handle);
  if (!is_drawn(of(w), filter) || !is_drawn(of(dy), errors)) return CUDNN_STATUS_EXECUTION_FAILED;
  return found(has_algorithm(of(dx), of(w), of(dy)), of(dx), to, count, results);
}
cudnnStatus_t cudnnFindConvolutionBackwardFilterAlgorithmEx(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t x, const void* in, const cudnnTensorDescriptor_t dy,
    const void* errors, const cudnnConvolutionDescriptor_t, const cudnnFilterDescriptor_t dw, void* to,
    const int, int* count, cudnnConvolutionBwdFilterAlgoPerf_t* results, void*, std::size_t) {
  stepcast::fake::drain_stream_of(handle);
  if (!is_drawn(of(x), in) || !is_drawn(of(dy), errors)) return CUDNN_STATUS_EXECUTION_FAILED;
  return found(has_algorithm(of(x), of(dw), of(dy)), of(dw), to, count, results);
}

cudnnStatus_t cudnnGetConvolutionForwardWorkspaceSize(cudnnHandle_t, const cudnnTensorDescriptor_t x,
                                                      const cudnnFilterDescriptor_t w,
                                                      const cudnnConvolutionDescriptor_t c,
                                                      const cudnnTensorDescriptor_t y,
                                                      cudnnConvolutionFwdAlgo_t how, std::size_t* bytes) {
  return workspace(of(x), of(w), of(c), of(y), how, bytes);
}
cudnnStatus_t cudnnGetConvolutionBackwardDataWorkspaceSize(cudnnHandle_t, const cudnnFilterDescriptor_t w,
                                                           const cudnnTensorDescriptor_t dy,
                                                           const cudnnConvolutionDescriptor_t c,
                                                           const cudnnTensorDescriptor_t dx,
                                                           cudnnConvolutionBwdDataAlgo_t how,
                                                           std::size_t* bytes) {
  return workspace(of(dx), of(w), of(c), of(dy), how, bytes);
}
cudnnStatus_t cudnnGetConvolutionBackwardFilterWorkspaceSize(cudnnHandle_t, const cudnnTensorDescriptor_t x,
                                                             const cudnnTensorDescriptor_t dy,
                                                             const cudnnConvolutionDescriptor_t c,
                                                             const cudnnFilterDescriptor_t dw,
                                                             cudnnConvolutionBwdFilterAlgo_t how,
                                                             std::size_t* bytes) {
  return workspace(of(x), of(dw), of(c), of(dy), how, bytes);
}
