#include "core/error.hpp"
#include "gpu/nccl_link.hpp"

namespace stepcast {
namespace {

[[noreturn]] void refuse() {
  throw InputError("--path nccl: stepcast-gpu was built without NCCL; --path host needs none");
}

}  // namespace

std::string nccl_unique_id() {
  refuse();
}

std::unique_ptr<NcclGroup> join_nccl(const NcclEnd&, const std::string&) {
  refuse();
}

std::unique_ptr<DeviceLink> join_nccl_link(const NcclEnd&, const std::string&) {
  refuse();
}

}  // namespace stepcast
