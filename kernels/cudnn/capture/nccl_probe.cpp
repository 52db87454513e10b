#include "kernels/cudnn/capture/nccl_probe.hpp"

#ifdef STEPCAST_HAS_NCCL
#include <fmt/format.h>
#include <nccl.h>

#include <stdexcept>

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

void all_reduce(const AllReduceArrays& arrays, std::int64_t elements, ncclComm_t communicator) {
  check_nccl(ncclAllReduce(arrays.from, arrays.to, elements, ncclFloat, ncclSum, communicator, arrays.stream),
             "ncclAllReduce");
  ncclResult_t later = ncclSuccess;
  check_nccl(ncclCommGetAsyncError(communicator, &later), "ncclCommGetAsyncError");
  check_nccl(later, "ncclAllReduce");
}

}  // namespace

void probe_all_reduce(const AllReduceArrays& arrays, const TimeCall& time, std::vector<std::string>& notes) {
  if (arrays.from == arrays.to)
    throw std::invalid_argument("an all-reduce of one rank in place launches nothing that could be timed");
  try {
    int version = 0;
    check_nccl(ncclGetVersion(&version), "ncclGetVersion");
    notes.push_back(fmt::format("NCCL {}.{}.{}", version / 10000, version / 100 % 100, version % 100));
    ncclComm_t made = nullptr;
    check_nccl(ncclCommInitAll(&made, 1, &arrays.device), "ncclCommInitAll");
    const Communicator communicator(made);
    for (std::int64_t elements = 1024; elements <= arrays.elements; elements *= 16) {
      time("all-reduce among one rank, out of place", 4.0 * elements,
           [&] { all_reduce(arrays, elements, communicator.get()); });
    }
  } catch (const GpuError& error) {
    notes.push_back(fmt::format("all-reduce: {}", error.what()));
  }
}
#else
void probe_all_reduce(const AllReduceArrays&, const TimeCall&, std::vector<std::string>& notes) {
  notes.emplace_back("this build has no NCCL");
}
#endif

}  // namespace stepcast::cudnn
