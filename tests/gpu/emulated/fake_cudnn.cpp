#include "fake_cudnn.hpp"

#include "fake_streams.hpp"

// Fakes of cuDNN's handles and descriptors. They replace the library's functions, which need a GPU.

using namespace stepcast::fake;

cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) {
  *handle = reinterpret_cast<cudnnHandle_t>(new char);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
  delete reinterpret_cast<char*>(handle);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
  set_stream(handle, stream);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnCreateTensorDescriptor(cudnnTensorDescriptor_t* made) {
  *made = reinterpret_cast<cudnnTensorDescriptor_t>(new Tensor);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnDestroyTensorDescriptor(cudnnTensorDescriptor_t one) {
  delete &of(one);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetTensorNdDescriptor(cudnnTensorDescriptor_t one, cudnnDataType_t type, int count,
                                         const int* dims, const int* strides) {
  of(one) = {type, Sizes(dims, dims + count), Sizes(strides, strides + count)};
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnCreateFilterDescriptor(cudnnFilterDescriptor_t* made) {
  *made = reinterpret_cast<cudnnFilterDescriptor_t>(new Tensor);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnDestroyFilterDescriptor(cudnnFilterDescriptor_t one) {
  delete &of(one);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetFilterNdDescriptor(cudnnFilterDescriptor_t one, cudnnDataType_t type,
                                         cudnnTensorFormat_t format, int count, const int* dims) {
  Tensor made{type, Sizes(dims, dims + count), Sizes(count)};
  std::vector<std::size_t> order;  // dimensions, the slowest first
  const std::size_t last = count;
  for (std::size_t i = 0; i < last; ++i) order.push_back(i);
  if (format == CUDNN_TENSOR_NHWC) {
    order.erase(order.begin() + 1);
    order.push_back(1);
  }
  int stride = 1;
  for (std::size_t i = last; i-- > 0;) {
    made.strides[order[i]] = stride;
    stride *= made.dims[order[i]];
  }
  of(one) = made;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnCreateConvolutionDescriptor(cudnnConvolutionDescriptor_t* made) {
  *made = reinterpret_cast<cudnnConvolutionDescriptor_t>(new Convolution);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnDestroyConvolutionDescriptor(cudnnConvolutionDescriptor_t one) {
  delete &of(one);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetConvolutionNdDescriptor(cudnnConvolutionDescriptor_t one, int count, const int* pad,
                                              const int* stride, const int* dilation,
                                              cudnnConvolutionMode_t mode, cudnnDataType_t) {
  of(one) = {Sizes(pad, pad + count), Sizes(stride, stride + count), Sizes(dilation, dilation + count),
             CUDNN_DEFAULT_MATH, 1};
  return mode == CUDNN_CROSS_CORRELATION ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_BAD_PARAM;
}
cudnnStatus_t cudnnSetConvolutionGroupCount(cudnnConvolutionDescriptor_t one, int groups) {
  of(one).groups = groups;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetConvolutionMathType(cudnnConvolutionDescriptor_t one, cudnnMathType_t math) {
  of(one).math = math;
  return CUDNN_STATUS_SUCCESS;
}
