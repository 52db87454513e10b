#pragma once

#include <string>
#include <vector>

#include "kernels/network/gpu_options.hpp"
#include "kernels/timing/capture.hpp"

namespace stepcast {

/// Captures a trace on a GPU, like `capture`, with CUDA events on the one stream instead of clocks. The trace
/// also holds steps without events inside and steps replayed as one CUDA graph; its notes name algorithms,
/// workspace, clocks and temperature. Ignores `threads` and `disturbance`, because no other program uses the
/// GPU.
/// @throws InputError if there is no such device or a layer is not supported, LimitError if its memory is
/// full
Trace capture_on_gpu(const GpuOptions& gpu, const Model& model, const CaptureOptions& options);

/// Times of whole steps without events inside [s], after `warm_up` others.
std::vector<double> time_steps_on_gpu(const GpuOptions& gpu, const Model& model,
                                      const CaptureOptions& options);

/// Says before any measurement that a capture cannot fit: neither its memory, nor a tensor of 2^31 elements
/// and more in a layer that cuDNN computes.
/// @throws LimitError
void check_capture_fits(const GpuOptions& gpu, const Model& model, const CaptureOptions& options);

/// Memory of the device that is free now. Makes a context on the device.
Bytes free_gpu_memory(int device);
/// @throws InputError if there is no such GPU. Makes no context.
void require_gpu(int device);
std::string gpu_name(int device);

/// Times of one operation that was measured on the device alone.
struct GpuProbe {
  std::string name;             ///< such as "host to device copy"
  Bytes bytes;                  ///< bytes that it moves, or 0
  std::vector<double> seconds;  ///< times of all repetitions
  /// Time that the bandwidth of the GPU's memory allows at least for these bytes; 0 for all but kernels.
  Seconds floor = {0};
};

/// Times of launches, of copies between host and device and on the device, of this project's kernels on large
/// arrays, of NCCL's all-reduce with one rank, and of steps that run alone and beside a copy or a reduction.
struct GpuProbes {
  std::string device, state_before, state_after;
  std::vector<GpuProbe> probes;
  std::vector<std::string> notes;  ///< operations that could not be measured, and why
};
GpuProbes probe_gpu(const GpuOptions& gpu, const Model& model, std::int64_t batch);

}  // namespace stepcast
