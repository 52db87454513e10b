#include <cuda_runtime_api.h>

#include <cstdlib>

#include "pretended_cuda.hpp"

// Fakes of CUDA graphs. Captured work runs at once; a launch of the graph does nothing.

bool& stepcast::pretended::capturing() {
  thread_local bool now = false;
  return now;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t, cudaStreamCaptureMode) {
  bool& now = stepcast::pretended::capturing();
  if (now) return cudaErrorIllegalState;
  now = true;
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t, cudaGraph_t* graph) {
  stepcast::pretended::capturing() = false;
  *graph = static_cast<cudaGraph_t>(std::malloc(1));
  return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  std::free(graph);
  return cudaSuccess;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* made, cudaGraph_t graph, unsigned long long) {
  *made = static_cast<cudaGraphExec_t>(std::malloc(1));
  return graph == nullptr ? cudaErrorInvalidValue : cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph) {
  std::free(graph);
  return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t) {
  return graph == nullptr ? cudaErrorInvalidValue : cudaSuccess;
}
