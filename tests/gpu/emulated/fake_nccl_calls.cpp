#include "fake_nccl.hpp"

// Functions of the fake NCCL, with checks of the manual's rules for memory.

using namespace stepcast::fake;

ncclResult_t ncclAllReduce(const void* from, void* to, std::size_t count, ncclDataType_t, ncclRedOp_t,
                           ncclComm_t comm, cudaStream_t stream) {
  return call(comm, {Op::Kind::all_reduce, static_cast<const float*>(from), static_cast<float*>(to), count, 0,
                     stream});
}
ncclResult_t ncclBroadcast(const void* from, void* to, std::size_t count, ncclDataType_t, int root,
                           ncclComm_t comm, cudaStream_t stream) {
  return call(comm, {Op::Kind::broadcast, static_cast<const float*>(from), static_cast<float*>(to), count,
                     root, stream});
}
ncclResult_t ncclReduce(const void* from, void* to, std::size_t count, ncclDataType_t, ncclRedOp_t, int root,
                        ncclComm_t comm, cudaStream_t stream) {
  return call(comm, {Op::Kind::reduce, static_cast<const float*>(from), static_cast<float*>(to), count, root,
                     stream});
}
/// In place means that each rank's result is its part of the input's memory.
ncclResult_t ncclReduceScatter(const void* from, void* to, std::size_t count, ncclDataType_t, ncclRedOp_t,
                               ncclComm_t comm, cudaStream_t stream) {
  const auto *given = static_cast<const float*>(from), *got = static_cast<const float*>(to);
  const std::size_t part = rank_of(comm) * count;
  const bool within = got >= given && got < given + count * size_of(comm);
  if (within && got != given + part) return ncclInvalidUsage;
  return call(comm, {Op::Kind::reduce_scatter, given, static_cast<float*>(to), count, 0, stream});
}
ncclResult_t ncclAllGather(const void* from, void* to, std::size_t count, ncclDataType_t, ncclComm_t comm,
                           cudaStream_t stream) {
  const auto *given = static_cast<const float*>(from), *got = static_cast<const float*>(to);
  const std::size_t part = rank_of(comm) * count;
  const bool within = given >= got && given < got + count * size_of(comm);
  if (within && given != got + part) return ncclInvalidUsage;
  return call(comm, {Op::Kind::all_gather, given, static_cast<float*>(to), count, 0, stream});
}
ncclResult_t ncclSend(const void* from, std::size_t count, ncclDataType_t, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return call(comm, {Op::Kind::send, static_cast<const float*>(from), nullptr, count, peer, stream});
}
ncclResult_t ncclRecv(void* to, std::size_t count, ncclDataType_t, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return call(comm, {Op::Kind::receive, nullptr, static_cast<float*>(to), count, peer, stream});
}
