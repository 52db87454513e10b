#pragma once

#include <string>
#include <vector>

#include "kernels/capture.hpp"
#include "kernels/gpu.hpp"

namespace stepcast {

/// As `capture`, on a GPU: events on the one stream in the place of clocks. Steps without events inside and
/// steps replayed as one CUDA graph are in the trace too; algorithms, workspace, clocks and temperature are
/// in its notes. `threads` and `disturbance` mean nothing here: nobody else has the GPU.
/// @throws InputError where there is no such device or a layer cannot be had, LimitError where memory is full
Trace capture_on_gpu(const GpuOptions& gpu, const Model& model, const CaptureOptions& options);

/// Seconds of whole steps without events inside, after `warm_up` others.
std::vector<double> time_steps_on_gpu(const GpuOptions& gpu, const Model& model,
                                      const CaptureOptions& options);

/// Memory of the device that is free now, and its name.
Bytes free_gpu_memory(int device);
std::string gpu_name(int device);

/// One thing measured on the device alone.
struct GpuProbe {
  std::string name;             ///< "host to device copy"
  Bytes bytes;                  ///< moved, 0 where nothing is
  std::vector<double> seconds;  ///< all repeats
};

/// Launch overhead, copies between host and device and on the device, NCCL's all-reduce at one rank, and what
/// a step slows down by while a copy or a reduction runs beside it.
struct GpuProbes {
  std::string device, state_before, state_after;
  std::vector<GpuProbe> probes;
  std::vector<std::string> notes;  ///< what could not be measured, and why
};
GpuProbes probe_gpu(const GpuOptions& gpu, const Model& model, std::int64_t batch);

}  // namespace stepcast
