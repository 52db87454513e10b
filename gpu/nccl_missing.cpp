#include "core/error.hpp"
#include "gpu/nccl_group.hpp"

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

}  // namespace stepcast
