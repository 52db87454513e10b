#include "core/error.hpp"
#include "gpu/nccl/nccl_backend.hpp"

namespace stepcast {
namespace {

[[noreturn]] void refuse() {
  throw InputError("--path: nccl is not available: stepcast-gpu was built without NCCL; use --path host");
}

}  // namespace

std::string nccl_unique_id() {
  refuse();
}

std::unique_ptr<NcclGroup> join_nccl(const NcclRank&, const std::string&) {
  refuse();
}

std::unique_ptr<DeviceChannel> join_nccl_link(const NcclRank&, const std::string&) {
  refuse();
}

}  // namespace stepcast
