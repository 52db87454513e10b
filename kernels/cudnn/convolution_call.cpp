#include "kernels/cudnn/convolution_call.hpp"

#include <fmt/format.h>

namespace stepcast::cudnn {
namespace {

constexpr float kOne = 1, kZero = 0;

/// Two or three spatial sizes, as cuDNN wants.
std::vector<int> spatial(const std::vector<std::int64_t>& sizes, int fill) {
  std::vector<int> result(sizes.begin(), sizes.end());
  if (result.size() == 1) result.insert(result.begin(), fill);
  return result;
}

void set_math(const ConvolutionCall& call, cudnnMathType_t math) {
  check(cudnnSetConvolutionMathType(call.convolution.get(), math), "cudnnSetConvolutionMathType");
}

/// f32 keeps to its own rule; elsewhere the timed algorithm was timed with this kind of arithmetic.
void set_math(const Device& device, const ConvolutionCall& call, const TimedChoice& choice) {
  const bool f32 = device.options.precision == GpuPrecision::f32;
  set_math(call, f32 ? CUDNN_FMA_MATH : static_cast<cudnnMathType_t>(choice.math));
}

}  // namespace

ConvolutionCall describe_call(const Device& device, const CudnnTensor& x, const CudnnTensor& y,
                              const ConvolutionShape& shape) {
  ConvolutionCall call;
  call.x = describe(x, as_image(x.shape()));
  call.y = describe(y, as_image(y.shape()));
  const Shape dims = as_image(shape.filter);
  const std::vector<int> filter(dims.begin(), dims.end());
  call.w = make_owned<FilterDesc>(cudnnCreateFilterDescriptor, "cudnnCreateFilterDescriptor");
  check(cudnnSetFilterNdDescriptor(call.w.get(), device.cudnn_type(),
                                   shape.channels_last ? CUDNN_TENSOR_NHWC : CUDNN_TENSOR_NCHW,
                                   static_cast<int>(filter.size()), filter.data()),
        "cudnnSetFilterNdDescriptor");
  const std::vector<int> pad = spatial(shape.pad, 0), stride = spatial(shape.stride, 1);
  const std::vector<int> dilation(pad.size(), 1);
  call.convolution =
      make_owned<ConvolutionDesc>(cudnnCreateConvolutionDescriptor, "cudnnCreateConvolutionDescriptor");
  check(cudnnSetConvolutionNdDescriptor(call.convolution.get(), static_cast<int>(pad.size()), pad.data(),
                                        stride.data(), dilation.data(), CUDNN_CROSS_CORRELATION,
                                        CUDNN_DATA_FLOAT),
        "cudnnSetConvolutionNdDescriptor");
  set_math(call, device.cudnn_math());
  call.geometry = fmt::format("{} to {}, filter {}, stride {}, pad {}, order {}", fmt::join(x.shape(), "x"),
                              fmt::join(y.shape(), "x"), fmt::join(shape.filter, "x"), fmt::join(stride, "x"),
                              fmt::join(pad, "x"), static_cast<int>(x.order()));
  return call;
}

void convolve(const Device& device, const ConvolutionCall& call, const TimedChoice& how, const void* x,
              const void* w, void* y) {
  set_math(device, call, how);
  check(cudnnConvolutionForward(device.dnn.get(), &kOne, call.x.get(), x, call.w.get(), w,
                                call.convolution.get(), static_cast<cudnnConvolutionFwdAlgo_t>(how.algorithm),
                                device.workspace.data(), how.workspace, &kZero, call.y.get(), y),
        "cudnnConvolutionForward");
}

void convolve_back_data(const Device& device, const ConvolutionCall& call, const TimedChoice& how,
                        const void* w, const void* dy, void* dx) {
  set_math(device, call, how);
  check(cudnnConvolutionBackwardData(device.dnn.get(), &kOne, call.w.get(), w, call.y.get(), dy,
                                     call.convolution.get(),
                                     static_cast<cudnnConvolutionBwdDataAlgo_t>(how.algorithm),
                                     device.workspace.data(), how.workspace, &kZero, call.x.get(), dx),
        "cudnnConvolutionBackwardData");
}

void convolve_back_filter(const Device& device, const ConvolutionCall& call, const TimedChoice& how,
                          const void* x, const void* dy, void* dw) {
  set_math(device, call, how);
  check(cudnnConvolutionBackwardFilter(device.dnn.get(), &kOne, call.x.get(), x, call.y.get(), dy,
                                       call.convolution.get(),
                                       static_cast<cudnnConvolutionBwdFilterAlgo_t>(how.algorithm),
                                       device.workspace.data(), how.workspace, &kZero, call.w.get(), dw),
        "cudnnConvolutionBackwardFilter");
}

}  // namespace stepcast::cudnn
