#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <utility>

/// Runs CUDA kernels as plain functions on the host, so that they can be tested without a GPU. Blocks run one
/// after another; the threads of a block are coroutines with stacks of their own, which switch at barriers.
/// The order in which they run between two barriers is drawn for each block, so that a missing barrier shows.
/// For .cu files whose launches were translated to EMULATE (launches.sed).
namespace stepcast::emulated {

struct Shape {
  dim3 grid, block;
  cudaStream_t stream;
  Shape(dim3 blocks, dim3 threads, int, cudaStream_t on) : grid(blocks), block(threads), stream(on) {}
};

void run(const Shape& shape, const std::function<void()>& thread);

/// Which blocks of a launch run; empty: all. Tests of very large arrays look at a few.
std::function<bool(uint3)>& chosen_blocks();

/// The function that puts a launch into its stream; empty: the launch runs at once.
std::function<void(cudaStream_t, std::function<void()>)>& launcher();
/// Counts the launches while it exists.
class LaunchCount {
 public:
  LaunchCount() {
    launcher() = [this](cudaStream_t stream, std::function<void()> kernel) {
      ++launches_;
      usual_(stream, std::move(kernel));
    };
  }
  LaunchCount(const LaunchCount&) = delete;
  ~LaunchCount() { launcher() = usual_; }
  int launches() const { return launches_; }

 private:
  std::function<void(cudaStream_t, std::function<void()>)> usual_ = launcher();
  int launches_ = 0;
};
/// Runs a kernel on its stream. An empty grid is refused at once, as a launch is.
void launch(const Shape& shape, const std::function<void()>& thread);

/// Waits for all threads of the block, or of the warp, that still run.
void meet_block();
void meet_warp();
/// The shared value of lane `lane` in the warp of the calling thread.
double& warp_place(unsigned lane);
unsigned own_lane();
unsigned warp_lanes();

}  // namespace stepcast::emulated

extern uint3 threadIdx, blockIdx;
extern dim3 blockDim, gridDim;

#define EMULATE(kernel, shape, ...) \
  stepcast::emulated::launch(stepcast::emulated::Shape shape, [=] { kernel(__VA_ARGS__); })
#undef __shared__
#define __shared__ static  // one block runs at a time
#undef __launch_bounds__
#define __launch_bounds__(...)

using std::min;

inline void __syncthreads() {
  stepcast::emulated::meet_block();
}

template <class Number>
Number __shfl_down_sync(unsigned, Number value, int step) {
  using namespace stepcast::emulated;
  const unsigned own = own_lane(), from = own + step;
  warp_place(own) = value;
  meet_warp();
  const Number found = from < warp_lanes() ? static_cast<Number>(warp_place(from)) : value;
  meet_warp();
  return found;
}

template <class Number>
Number __shfl_xor_sync(unsigned, Number value, int mask) {
  using namespace stepcast::emulated;
  const unsigned own = own_lane(), from = own ^ static_cast<unsigned>(mask);
  warp_place(own) = value;
  meet_warp();
  const Number found = from < warp_lanes() ? static_cast<Number>(warp_place(from)) : value;
  meet_warp();
  return found;
}

inline unsigned __ballot_sync(unsigned, bool holds) {
  using namespace stepcast::emulated;
  warp_place(own_lane()) = holds ? 1 : 0;
  meet_warp();
  unsigned bits = 0;
  for (unsigned lane = 0; lane < warp_lanes(); ++lane) bits |= (warp_place(lane) > 0 ? 1u : 0u) << lane;
  meet_warp();
  return bits;
}

template <class Number>
void atomicAdd(Number* sum, Number value) {
  *sum += value;  // one thread runs at a time
}

inline float __uint_as_float(unsigned bits) {
  return std::bit_cast<float>(bits);
}
inline float normcdff(float x) {
  return 0.5F * std::erfc(-x * 0.70710678F);
}
inline float rsqrtf(float x) {
  return 1 / std::sqrt(x);
}
inline double rsqrt(double x) {
  return 1 / std::sqrt(x);
}
