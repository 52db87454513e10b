#include "kernels/cudnn/capture/nccl_probe.hpp"

#ifdef STEPCAST_HAS_NCCL
#include <fmt/format.h>
#include <nccl.h>

#include "kernels/cudnn/cuda/handles.hpp"
#endif

namespace stepcast::cudnn {

#ifdef STEPCAST_HAS_NCCL
namespace {

void check_nccl(ncclResult_t status, const char* call) {
  if (status == ncclSuccess) return;
  throw GpuError(fmt::format("{}: {}", call, ncclGetErrorString(status)));
}

using Communicator = Owned<ncclComm_t, ncclCommDestroy>;

}  // namespace

SingleRankAllReduce make_single_rank_all_reduce(int device, cudaStream_t stream) {
  int version = 0;
  check_nccl(ncclGetVersion(&version), "ncclGetVersion");
  ncclComm_t made = nullptr;
  check_nccl(ncclCommInitAll(&made, 1, &device), "ncclCommInitAll");
  const std::shared_ptr<Communicator> owner = std::make_shared<Communicator>(made);
  SingleRankAllReduce result;
  result.library = fmt::format("NCCL {}.{}.{}", version / 10000, version / 100 % 100, version % 100);
  result.start = [owner, stream](const float* from, float* to, std::size_t elements) {
    check_nccl(ncclAllReduce(from, to, elements, ncclFloat, ncclSum, owner->get(), stream), "ncclAllReduce");
    ncclResult_t later = ncclSuccess;
    check_nccl(ncclCommGetAsyncError(owner->get(), &later), "ncclCommGetAsyncError");
    check_nccl(later, "ncclAllReduce");
  };
  return result;
}
#else
SingleRankAllReduce make_single_rank_all_reduce(int, cudaStream_t) {
  return {{}, "this build has no NCCL"};
}
#endif

}  // namespace stepcast::cudnn
