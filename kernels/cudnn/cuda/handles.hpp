#pragma once

#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <cudnn.h>

#include <memory>
#include <stdexcept>
#include <type_traits>

namespace stepcast::cudnn {

/// A failed call of CUDA, cuDNN or cuBLAS, such as "cudnnRNNForward: CUDNN_STATUS_BAD_PARAM".
struct GpuError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// @throws LimitError if the device has no memory left, GpuError for all other failures
void check(cudaError_t status, const char* call);
void check(cudnnStatus_t status, const char* call);
void check(cublasStatus_t status, const char* call);

/// Deleter for a handle or descriptor of a C library. Ignores the status of `Destroy`, because a destructor
/// cannot report it.
template <class Handle, auto Destroy>
struct Destroyer {
  void operator()(Handle handle) const { static_cast<void>(Destroy(handle)); }
};
template <class Handle, auto Destroy>
using Owned = std::unique_ptr<std::remove_pointer_t<Handle>, Destroyer<Handle, Destroy>>;

/// Creates a handle: make_owned<Descriptor>(cudnnCreateTensorDescriptor, "cudnnCreateTensorDescriptor").
template <class Owner, class Create>
Owner make_owned(const Create& create, const char* call) {
  typename Owner::pointer handle = nullptr;
  check(create(&handle), call);
  return Owner(handle);
}

using Stream = Owned<cudaStream_t, cudaStreamDestroy>;
using Event = Owned<cudaEvent_t, cudaEventDestroy>;

/// An event that takes the time when a stream reaches it.
Event make_event();
void record(cudaEvent_t event, cudaStream_t stream);
/// The GPU must have reached both events.
double seconds_between(cudaEvent_t begin, cudaEvent_t end);

/// Seconds that the GPU takes for the calls that `work` makes on the stream; waits for their end.
template <class Work>
double seconds_on_stream(cudaStream_t stream, const Work& work) {
  const Event begin = make_event(), end = make_event();
  record(begin.get(), stream);
  work();
  record(end.get(), stream);
  check(cudaEventSynchronize(end.get()), "cudaEventSynchronize");
  return seconds_between(begin.get(), end.get());
}

}  // namespace stepcast::cudnn
