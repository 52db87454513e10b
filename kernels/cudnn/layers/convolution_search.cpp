#include "kernels/cudnn/layers/convolution_search.hpp"

#include <fmt/format.h>

#include <array>

namespace stepcast::cudnn {
namespace {

/// True if the precision allows this arithmetic: tf32, f16 and bf16 may use tensor cores, f32 must not.
bool allowed(const Device& device, cudnnMathType_t math) {
  return device.options.precision != GpuPrecision::f32 || math == CUDNN_FMA_MATH ||
         math == CUDNN_DEFAULT_MATH;
}

/// The fastest algorithm that one of cuDNN's three searches finds. @param find  calls the search:
/// find(requested, returned, results)
template <class Performance, int Most, class Find>
TimedChoice fastest(Device& device, const std::string& key, const char* call, const Find& find) {
  const auto known = device.choices.find(key);
  if (known != device.choices.end()) return known->second;
  std::array<Performance, 2 * Most> results{};  // each algorithm with and without tensor cores
  int count = 0;
  check(find(static_cast<int>(results.size()), &count, results.data()), call);
  cudaGetLastError();  // clears the error of an algorithm that could not run; the next launch would report it
  const Performance* best = nullptr;
  for (int i = 0; i < count; ++i) {
    const Performance& one = results[static_cast<std::size_t>(i)];
    const bool works = one.status == CUDNN_STATUS_SUCCESS && one.memory <= device.workspace.bytes &&
                       allowed(device, one.mathType);
    if (works && (best == nullptr || one.time < best->time)) best = &one;
  }
  if (best == nullptr) {
    throw GpuError(fmt::format("{}: none of {} algorithms works within {} MiB of workspace", call, count,
                               device.workspace.bytes >> 20));
  }
  device.workspace.use(best->memory);
  const TimedChoice choice{static_cast<int>(best->algo), static_cast<int>(best->mathType), best->memory,
                           best->time * 1e-3};
  device.choices.emplace(key, choice);
  return choice;
}

template <std::size_t N>
std::string named(const char* pass, const std::array<const char*, N>& names, const TimedChoice& choice) {
  const auto index = static_cast<std::size_t>(choice.algorithm);
  return fmt::format("{} {} {:.1f} MiB", pass, index < N ? names[index] : "?",
                     static_cast<double>(choice.workspace) / (1 << 20));
}

}  // namespace

TimedChoice fastest_forward(Device& device, const ConvolutionCall& call, const void* x, const void* w,
                            void* y) {
  return fastest<cudnnConvolutionFwdAlgoPerf_t, CUDNN_CONVOLUTION_FWD_ALGO_COUNT>(
      device, "forward " + call.geometry, "cudnnFindConvolutionForwardAlgorithmEx",
      [&](int asked, int* got, cudnnConvolutionFwdAlgoPerf_t* results) {
        return cudnnFindConvolutionForwardAlgorithmEx(
            device.dnn.get(), call.x.get(), x, call.w.get(), w, call.convolution.get(), call.y.get(), y,
            asked, got, results, device.workspace.data(), device.workspace.bytes);
      });
}

TimedChoice fastest_backward_data(Device& device, const ConvolutionCall& call, const void* w, const void* dy,
                                  void* dx) {
  return fastest<cudnnConvolutionBwdDataAlgoPerf_t, CUDNN_CONVOLUTION_BWD_DATA_ALGO_COUNT>(
      device, "backward data " + call.geometry, "cudnnFindConvolutionBackwardDataAlgorithmEx",
      [&](int asked, int* got, cudnnConvolutionBwdDataAlgoPerf_t* results) {
        return cudnnFindConvolutionBackwardDataAlgorithmEx(
            device.dnn.get(), call.w.get(), w, call.y.get(), dy, call.convolution.get(), call.x.get(), dx,
            asked, got, results, device.workspace.data(), device.workspace.bytes);
      });
}

TimedChoice fastest_backward_filter(Device& device, const ConvolutionCall& call, const void* x,
                                    const void* dy, void* dw) {
  return fastest<cudnnConvolutionBwdFilterAlgoPerf_t, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_COUNT>(
      device, "backward filter " + call.geometry, "cudnnFindConvolutionBackwardFilterAlgorithmEx",
      [&](int asked, int* got, cudnnConvolutionBwdFilterAlgoPerf_t* results) {
        return cudnnFindConvolutionBackwardFilterAlgorithmEx(
            device.dnn.get(), call.x.get(), x, call.y.get(), dy, call.convolution.get(), call.w.get(), dw,
            asked, got, results, device.workspace.data(), device.workspace.bytes);
      });
}

std::string forward_name(const TimedChoice& choice) {
  constexpr std::array<const char*, 8> kNames{
      "IMPLICIT_GEMM", "IMPLICIT_PRECOMP_GEMM", "GEMM", "DIRECT", "FFT", "FFT_TILING",
      "WINOGRAD",      "WINOGRAD_NONFUSED"};
  return named("forward", kNames, choice);
}

std::string backward_data_name(const TimedChoice& choice) {
  constexpr std::array<const char*, 6> kNames{"0", "1", "FFT", "FFT_TILING", "WINOGRAD", "WINOGRAD_NONFUSED"};
  return named("backward data", kNames, choice);
}

std::string backward_filter_name(const TimedChoice& choice) {
  constexpr std::array<const char*, 7> kNames{"0",         "1", "FFT", "3", "WINOGRAD", "WINOGRAD_NONFUSED",
                                              "FFT_TILING"};
  return named("backward weights", kNames, choice);
}

}  // namespace stepcast::cudnn
