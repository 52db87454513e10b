#include "kernels/cudnn/layers/convolution_search.hpp"

#include <fmt/format.h>

#include <array>
#include <chrono>
#include <memory>
#include <optional>

namespace stepcast::cudnn {
namespace {

/// The report of a search about one algorithm.
template <class Performance>
std::string outcome(const Performance& one) {
  return fmt::format("algorithm {} (math {}): {}, {:.1f} MiB", static_cast<int>(one.algo),
                     static_cast<int>(one.mathType), cudnnGetErrorString(one.status), one.memory / 0x1p20);
}

/// Inputs of a search, on memory of its own: the layer's own memory may hold data, or zeros that padding
/// needs.
class DrawnInput {
 public:
  DrawnInput(Device& device, std::size_t bytes) : memory_(allocate_bytes(bytes, device.stream.get())) {
    device.draw(memory_.get(), bytes, device.element());
  }
  const void* data() const { return memory_.get(); }

 private:
  std::shared_ptr<void> memory_;
};

/// Results of two searches on a warm GPU; those of the first include the loading of kernels.
template <class Performance, std::size_t N, class Find>
cudnnStatus_t search_twice(Device& device, std::array<Performance, N>& results, int& count,
                           const Find& find) {
  device.raise_clocks();
  cudnnStatus_t status = CUDNN_STATUS_SUCCESS;
  for (int i = 0; i < 2; ++i) {
    count = 0;
    status = find(static_cast<int>(results.size()), &count, results.data());
    cudaGetLastError();  // clears the error of an algorithm that could not run; the next launch would report
                         // it
  }
  return status;
}

/// Precision f32 must not use tensor cores: with CUDNN_DEFAULT_MATH cuDNN may compute in tf32. An algorithm
/// that was timed with it is taken neither for its time nor for its workspace, which may differ.
bool allowed(const Device& device, cudnnMathType_t math) {
  return device.options.precision != GpuPrecision::f32 || math == CUDNN_FMA_MATH;
}

/// True if the algorithms of cuDNN's older calls are timed as well as the plans. That takes longer than the
/// plans do, because these calls also time algorithms that are many times slower. On an H200 with cuDNN 9.19
/// (ResNet-50, VGG-16, 3DGAN) none of them was faster than the plans, except in f32: 10 of 53 layers.
bool times_older_calls(const Device& device, const FastestPlan& found) {
  return found.plan == nullptr || device.options.precision == GpuPrecision::f32;
}

/// The fastest algorithm that one of cuDNN's three searches finds, if any, and the outcomes of all.
struct Searched {
  std::optional<TimedChoice> fastest;
  std::string outcomes;
};

/// @param found  the fastest plan, which may make the search needless
/// @param find   calls the search: find(requested, returned, results)
template <class Performance, int Most, class Find>
Searched search(Device& device, const FastestPlan& found, const Find& find) {
  if (!times_older_calls(device, found)) return {};
  std::array<Performance, 2UL * Most> results{};  // each algorithm with and without tensor cores
  int count = 0;
  const cudnnStatus_t status = search_twice(device, results, count, find);
  if (status != CUDNN_STATUS_SUCCESS) return {{}, cudnnGetErrorString(status)};
  Searched searched{{}, fmt::format("none of {} algorithms works", count)};
  for (int i = 0; i < count; ++i) {
    const Performance& one = results[i];
    searched.outcomes += "; " + outcome(one);
    const bool works = one.status == CUDNN_STATUS_SUCCESS && one.memory <= device.workspace.bytes &&
                       allowed(device, one.mathType);
    const double seconds = one.time * 1e-3;
    if (works && (!searched.fastest || seconds < searched.fastest->seconds))
      searched.fastest =
          TimedChoice{static_cast<int>(one.algo), static_cast<int>(one.mathType), one.memory, seconds};
  }
  return searched;
}

/// Adds the time of a search to the device's, from here to the end of the scope.
class SearchClock {
 public:
  explicit SearchClock(Device& device) : device_(device), begin_(Clock::now()) {}
  ~SearchClock() { device_.search_seconds += std::chrono::duration<double>(Clock::now() - begin_).count(); }

 private:
  using Clock = std::chrono::steady_clock;
  Device& device_;
  Clock::time_point begin_;
};

/// The faster of an algorithm and a plan; it is remembered under the key. @throws GpuError if there is
/// neither
TimedChoice fastest(Device& device, const std::string& key, const char* call, const Searched& searched,
                    const FastestPlan& found) {
  TimedChoice choice = searched.fastest.value_or(TimedChoice{});
  if (found.plan != nullptr && (!searched.fastest || found.seconds < choice.seconds)) {
    choice = {.workspace = found.plan->workspace(), .seconds = found.seconds, .plan = found.plan};
  } else if (!searched.fastest) {
    throw GpuError(fmt::format("{}: {}: in {} within {} MiB of workspace {}; graph API: {}", call, key,
                               to_string(device.options.precision), device.workspace.bytes >> 20,
                               searched.outcomes, found.outcome));
  }
  device.workspace.use(choice.workspace);
  device.choices.emplace(key, choice);
  return choice;
}

/// The choice for this key, if it was made before.
const TimedChoice* known(const Device& device, const std::string& key) {
  const auto found = device.choices.find(key);
  return found == device.choices.end() ? nullptr : &found->second;
}

/// The engine of a plan, and whether it transforms its inputs, which costs digits.
std::string name_of(const GraphEngine& engine) {
  const bool winograd = engine.has(CUDNN_NUMERICAL_NOTE_WINOGRAD);
  return fmt::format("ENGINE_{}{}", engine.number,
                     winograd                               ? "_WINOGRAD"
                     : engine.has(CUDNN_NUMERICAL_NOTE_FFT) ? "_FFT"
                                                            : "");
}

template <std::size_t N>
std::string named(const char* pass, const std::array<const char*, N>& names, const TimedChoice& choice) {
  const std::size_t index = choice.algorithm;
  return fmt::format("{} {} {:.1f} MiB", pass,
                     choice.plan != nullptr ? name_of(choice.plan->engine())
                     : index < N            ? names[index]
                                            : "?",
                     choice.workspace / 0x1p20);
}

}  // namespace

TimedChoice fastest_forward(Device& device, const ConvolutionCall& call, void* y) {
  const std::string key = "forward " + call.geometry;
  if (const TimedChoice* choice = known(device, key)) return *choice;
  const SearchClock clock(device);
  const DrawnInput x(device, call.x_bytes), w(device, call.w_bytes);
  const FastestPlan found =
      fastest_plan(device, call.tensors, ConvolutionPass::forward, {x.data(), w.data(), y});
  const auto searched = search<cudnnConvolutionFwdAlgoPerf_t, CUDNN_CONVOLUTION_FWD_ALGO_COUNT>(
      device, found, [&](int asked, int* got, cudnnConvolutionFwdAlgoPerf_t* results) {
        return cudnnFindConvolutionForwardAlgorithmEx(
            device.dnn.get(), call.x.get(), x.data(), call.w.get(), w.data(), call.convolution.get(),
            call.y.get(), y, asked, got, results, device.workspace.data(), device.workspace.bytes);
      });
  return fastest(device, key, "cudnnFindConvolutionForwardAlgorithmEx", searched, found);
}

TimedChoice fastest_backward_data(Device& device, const ConvolutionCall& call, void* dx) {
  const std::string key = "backward data " + call.geometry;
  if (const TimedChoice* choice = known(device, key)) return *choice;
  const SearchClock clock(device);
  const DrawnInput w(device, call.w_bytes), dy(device, call.y_bytes);
  const FastestPlan found =
      fastest_plan(device, call.tensors, ConvolutionPass::backward_data, {dx, w.data(), dy.data()});
  const auto searched = search<cudnnConvolutionBwdDataAlgoPerf_t, CUDNN_CONVOLUTION_BWD_DATA_ALGO_COUNT>(
      device, found, [&](int asked, int* got, cudnnConvolutionBwdDataAlgoPerf_t* results) {
        return cudnnFindConvolutionBackwardDataAlgorithmEx(
            device.dnn.get(), call.w.get(), w.data(), call.y.get(), dy.data(), call.convolution.get(),
            call.x.get(), dx, asked, got, results, device.workspace.data(), device.workspace.bytes);
      });
  return fastest(device, key, "cudnnFindConvolutionBackwardDataAlgorithmEx", searched, found);
}

TimedChoice fastest_backward_filter(Device& device, const ConvolutionCall& call, void* dw) {
  const std::string key = "backward filter " + call.geometry;
  if (const TimedChoice* choice = known(device, key)) return *choice;
  const SearchClock clock(device);
  const DrawnInput x(device, call.x_bytes), dy(device, call.y_bytes);
  const FastestPlan found =
      fastest_plan(device, call.tensors, ConvolutionPass::backward_filter, {x.data(), dw, dy.data()});
  const auto searched = search<cudnnConvolutionBwdFilterAlgoPerf_t, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_COUNT>(
      device, found, [&](int asked, int* got, cudnnConvolutionBwdFilterAlgoPerf_t* results) {
        return cudnnFindConvolutionBackwardFilterAlgorithmEx(
            device.dnn.get(), call.x.get(), x.data(), call.y.get(), dy.data(), call.convolution.get(),
            call.w.get(), dw, asked, got, results, device.workspace.data(), device.workspace.bytes);
      });
  return fastest(device, key, "cudnnFindConvolutionBackwardFilterAlgorithmEx", searched, found);
}

namespace {

/// True if `workspace_of(algorithm, bytes)` succeeds for an algorithm with a workspace that is allowed.
template <class Algorithm, class WorkspaceOf>
bool any_fits(const Device& device, int algorithms, const WorkspaceOf& workspace_of) {
  for (int i = 0; i < algorithms; ++i) {
    std::size_t bytes = 0;
    if (workspace_of(static_cast<Algorithm>(i), &bytes) == CUDNN_STATUS_SUCCESS &&
        bytes <= device.workspace.bytes)
      return true;
  }
  return false;
}

}  // namespace

bool is_supported(const Device& device, const ConvolutionCall& c) {
  const auto forward = [&](auto algorithm, std::size_t* bytes) {
    return cudnnGetConvolutionForwardWorkspaceSize(device.dnn.get(), c.x.get(), c.w.get(),
                                                   c.convolution.get(), c.y.get(), algorithm, bytes);
  };
  const auto data = [&](auto algorithm, std::size_t* bytes) {
    return cudnnGetConvolutionBackwardDataWorkspaceSize(device.dnn.get(), c.w.get(), c.y.get(),
                                                        c.convolution.get(), c.x.get(), algorithm, bytes);
  };
  const auto filter = [&](auto algorithm, std::size_t* bytes) {
    return cudnnGetConvolutionBackwardFilterWorkspaceSize(device.dnn.get(), c.x.get(), c.y.get(),
                                                          c.convolution.get(), c.w.get(), algorithm, bytes);
  };
  return (any_fits<cudnnConvolutionFwdAlgo_t>(device, CUDNN_CONVOLUTION_FWD_ALGO_COUNT, forward) ||
          has_plan(device, c.tensors, ConvolutionPass::forward)) &&
         (any_fits<cudnnConvolutionBwdDataAlgo_t>(device, CUDNN_CONVOLUTION_BWD_DATA_ALGO_COUNT, data) ||
          has_plan(device, c.tensors, ConvolutionPass::backward_data)) &&
         (any_fits<cudnnConvolutionBwdFilterAlgo_t>(device, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_COUNT,
                                                    filter) ||
          has_plan(device, c.tensors, ConvolutionPass::backward_filter));
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
