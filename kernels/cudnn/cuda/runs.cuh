#pragma once

#include <array>

#include "kernels/cudnn/cuda/device_code.cuh"

/// Code of kernels that go once over an array {outer, channels, inner}; for .cu files only. What they compute
/// is a functor with inputs `in` of kInputs arrays of Type, `channel(c)` with the constants of a channel, and
/// perhaps `line(o)` with those of a line, of type Line, which are loaded together with the elements.
///
/// A thread loads runs of W neighbouring elements, 16 bytes where the arrays allow it, and several runs
/// before it uses the first: a GPU reaches its bandwidth with about 40 KiB in flight per multiprocessor. It
/// divides only before its first element.
namespace stepcast::cudnn {
namespace {

template <class T, int W>
struct Loaded : AlignedVector<T, W> {
  __device__ float value(int j) const { return to_float(this->v[j]); }
};
/// Pairs of bf16 stay in their words until they are used: taken apart at once they fill twice the registers.
template <>
struct alignas(16) Loaded<__nv_bfloat16, 8> {
  unsigned words[4];
  __device__ float value(int j) const {
    return __uint_as_float(j % 2 == 0 ? words[j / 2] << 16 : words[j / 2] & 0xffff0000u);
  }
};

struct NoConstants {};

/// A functor with constants of lines.
template <class F>
concept ByLine = requires {
  typename F::Line;
};
template <class F>
struct LineOf {
  using type = NoConstants;
};
template <ByLine F>
struct LineOf<F> {
  using type = typename F::Line;
};

/// The runs of all inputs at one place, and the constants of its line.
template <class F, int W>
struct Runs {
  Loaded<typename F::Type, W> in[F::kInputs];
  typename LineOf<F>::type line;

  __device__ void load(const F& f, std::int64_t at, std::int64_t o) {
    for (int i = 0; i < F::kInputs; ++i)
      in[i] = reinterpret_cast<const Loaded<typename F::Type, W>*>(f.in.at[i])[at];
    if constexpr (ByLine<F>) line = f.line(o);
  }
  __device__ void values(int j, float* v) const {
    for (int i = 0; i < F::kInputs; ++i) v[i] = in[i].value(j);
  }
};

/// Runs that a thread loads before it uses the first.
template <class F>
constexpr int kInFlight = F::kInputs < 3 ? 4 : 2;

/// Blocks that a multiprocessor runs at the same time. Those of columns hold the constants and the sums of W
/// channels in registers. A launch over columns starts no more blocks than run at once.
template <class F, int W>
constexpr int kColumnBlocks = W == 1 ? 5 : std::array{4, 2, 3}[F::kInputs - 1];
constexpr int kPlaneBlocks = 4;

/// For innermost channels: the block is as wide as the channels have runs, at most a warp, and as high as it
/// has threads left. Each thread stays in the channels of one run.
struct Columns {
  std::int64_t outer, runs;  ///< lines, and runs in each
  bool backwards;  ///< from the last line to the first, whose neighbours a pass before has read last
  std::int64_t run, first, step;

  __device__ Columns(std::int64_t lines, std::int64_t runs_each, bool back)
      : outer(lines),
        runs(runs_each),
        backwards(back),
        run(std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x),
        first(std::int64_t{blockIdx.y} * blockDim.y + threadIdx.y),
        step(std::int64_t{gridDim.y} * blockDim.y) {}

  /// Calls `use(runs, place)` for each run of the thread.
  template <class F, int W, class Use>
  __device__ void visit(const F& f, const Use& use) const {
    constexpr int kRuns = kInFlight<F>;
    if (run >= runs) return;
    std::int64_t o = first;
    for (; o + (kRuns - 1) * step < outer; o += kRuns * step) some<F, W, false>(f, o, use);
    if (o < outer) some<F, W, true>(f, o, use);
  }

 private:
  /// @param Checked  some of the lines may be beyond the last
  template <class F, int W, bool Checked, class Use>
  __device__ void some(const F& f, std::int64_t o, const Use& use) const {
    constexpr int kRuns = kInFlight<F>;
    Runs<F, W> loaded[kRuns];
    for (int k = 0; k < kRuns; ++k) {
      const std::int64_t line = o + k * step;
      if (!Checked || line < outer) loaded[k].load(f, place(line), line);
    }
    for (int k = 0; k < kRuns; ++k) {
      const std::int64_t line = o + k * step;
      if (!Checked || line < outer) use(loaded[k], place(line));
    }
  }
  __device__ std::int64_t place(std::int64_t line) const {
    return (backwards ? outer - 1 - line : line) * runs + run;
  }
};

/// The constants of a thread's W channels. The threads of a block load them together, so that neighbours load
/// neighbours. All threads call it.
template <int W, class F>
__device__ void constants_of_columns(const F& f, std::int64_t channels, typename F::Channel* own) {
  __shared__ typename F::Channel shared[W][32];
  const std::int64_t first = std::int64_t{blockIdx.x} * blockDim.x * W;
  for (unsigned k = threadIdx.y * blockDim.x + threadIdx.x; k < blockDim.x * W; k += kThreads) {
    if (first + k < channels) shared[k % W][k / W] = f.channel(first + k);
  }
  __syncthreads();
  for (int j = 0; j < W; ++j) own[j] = shared[j][threadIdx.x];
}

/// For outer channels: a block has planes of channel blockIdx.x. Groups of `width` threads, at most a warp,
/// take a plane each, run by run.
struct Planes {
  std::int64_t outer, channels, runs;  ///< runs: in a plane
  unsigned width;
  bool backwards;

  /// Calls `use(runs, place)` for each run of the thread.
  template <class F, int W, class Use>
  __device__ void visit(const F& f, const Use& use) const {
    constexpr int kRuns = kInFlight<F>;
    const unsigned lines = blockDim.x / width;
    const std::int64_t step = std::int64_t{gridDim.y} * lines, first = threadIdx.x % width;
    std::int64_t o = std::int64_t{blockIdx.y} * lines + threadIdx.x / width, k = first;
    while (first < runs && o < outer) {
      Runs<F, W> loaded[kRuns];
      std::int64_t at[kRuns];
      for (int n = 0; n < kRuns; ++n) {
        at[n] = -1;
        if (o >= outer) continue;
        at[n] = ((backwards ? outer - 1 - o : o) * channels + blockIdx.x) * runs + k;
        loaded[n].load(f, at[n], o);
        k += width;
        if (k < runs) continue;
        k = first;
        o += step;
      }
      for (int n = 0; n < kRuns; ++n) {
        if (at[n] >= 0) use(loaded[n], at[n]);
      }
    }
  }
};

}  // namespace
}  // namespace stepcast::cudnn
