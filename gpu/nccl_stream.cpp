#include "gpu/nccl_stream.hpp"

namespace stepcast {
namespace {

using cudnn::check;

/// Each thread has a current GPU of its own.
int made_current(int device) {
  check(cudaSetDevice(device), "cudaSetDevice");
  return device;
}

}  // namespace

NcclStream::NcclStream(int device)
    : device_(made_current(device)),
      stream_(cudnn::make_stream()),
      done_(cudnn::make_owned<cudnn::Event>(
          [](cudaEvent_t* made) { return cudaEventCreateWithFlags(made, cudaEventDisableTiming); },
          "cudaEventCreateWithFlags")) {}

void NcclStream::begin_after(const DeviceMemory::Mark& mark) {
  made_current(device_);
  if (mark) check(cudaStreamWaitEvent(get(), cudnn::event_of(mark), 0), "cudaStreamWaitEvent");
}

void NcclStream::finish(NcclCommunicator& communicator) {
  check(cudaEventRecord(done_.get(), get()), "cudaEventRecord");
  while (cudaEventQuery(done_.get()) == cudaErrorNotReady) {
    cudaGetLastError();  // which "not ready" would be
    communicator.look();
  }
  check(cudaStreamSynchronize(get()), "cudaStreamSynchronize");
}

}  // namespace stepcast
