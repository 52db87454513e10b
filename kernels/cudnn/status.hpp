#pragma once

#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <cudnn.h>

#include <stdexcept>

namespace stepcast::cudnn {

/// A call of CUDA, cuDNN or cuBLAS that failed: "cudnnRNNForward: CUDNN_STATUS_BAD_PARAM".
struct GpuError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// @throws LimitError where the device has no memory left, GpuError for everything else that is no success
void check(cudaError_t status, const char* call);
void check(cudnnStatus_t status, const char* call);
void check(cublasStatus_t status, const char* call);

}  // namespace stepcast::cudnn
