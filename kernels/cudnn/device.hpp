#pragma once

#include <cublasLt.h>

#include <map>
#include <memory>
#include <string>

#include "kernels/cudnn/element.hpp"
#include "kernels/cudnn/owned.hpp"
#include "kernels/gpu.hpp"

namespace stepcast::cudnn {

/// Zeroed memory of the device. @throws LimitError
std::shared_ptr<void> allocate_bytes(std::size_t bytes, cudaStream_t stream);

/// That runs beside the default stream. @throws GpuError
Stream make_stream();

/// Memory that library calls use one after the other, of a fixed size, so that a captured graph stays valid.
struct Workspace {
  std::shared_ptr<void> memory;
  std::size_t bytes = 0;
  std::size_t most_used = 0;

  /// Notes that a call uses so much of it.
  void use(std::size_t needed) { most_used = needed > most_used ? needed : most_used; }
  void* data() const { return memory.get(); }
};

/// A way to compute a convolution, the fastest that was timed.
struct TimedChoice {
  int algorithm = 0;
  int math = 0;  ///< cudnnMathType_t
  std::size_t workspace = 0;
  double seconds = 0;
};

/// One GPU as a network sees it: one stream that everything runs on, and the libraries' handles.
struct Device {
  explicit Device(const GpuOptions& options);

  Element element() const;
  cudnnDataType_t cudnn_type() const;
  cudaDataType_t cuda_type() const;
  /// tf32 is a way of computing with fp32 data.
  cudnnMathType_t cudnn_math() const;
  cublasComputeType_t cublas_compute() const;

  GpuOptions options;
  cudaDeviceProp properties{};
  Stream stream;
  Owned<cudnnHandle_t, cudnnDestroy> dnn;
  Owned<cublasHandle_t, cublasDestroy_v2> blas;
  Owned<cublasLtHandle_t, cublasLtDestroy> lt;
  Workspace workspace;
  std::map<std::string, TimedChoice> choices;  ///< of convolutions, by their geometry
};

/// @throws InputError, one line, where there is no such device
void require_device(int device);

}  // namespace stepcast::cudnn
