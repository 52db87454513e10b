#include "gpu/nccl_communicator.hpp"

#include <fmt/format.h>

#include <cstring>
#include <stdexcept>
#include <thread>

#include "core/error.hpp"

namespace stepcast {

NcclCommunicator::NcclCommunicator(const NcclEnd& end, const std::string& unique_id) : end_(end) {
  ncclUniqueId id;
  if (unique_id.size() != sizeof id.internal) throw std::invalid_argument("no unique id of NCCL");
  std::memcpy(id.internal, unique_id.data(), sizeof id.internal);
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  if (end_.most_blocks > 0) config.maxCTAs = end_.most_blocks;
  begin("joining the group");
  settle(ncclCommInitRankConfig(&communicator_, end_.size, id, end_.number, &config),
         "ncclCommInitRankConfig");
}

NcclCommunicator::~NcclCommunicator() {
  if (communicator_ == nullptr) return;
  try {
    begin("leaving the group");
    settle(ncclCommFinalize(communicator_), "ncclCommFinalize");
    ncclCommDestroy(communicator_);
  } catch (const std::exception&) {  // aborted
  }
}

void NcclCommunicator::begin(const char* what) {
  doing_ = what;
  begun_ = std::chrono::steady_clock::now();
}

void NcclCommunicator::queue(ncclResult_t status, const char* call) {
  if (status != ncclSuccess && status != ncclInProgress) fail(fmt::format("{}: {}", call, words(status)));
}

void NcclCommunicator::settle(ncclResult_t status, const char* call) {
  queue(status, call);
  while (status == ncclInProgress) {
    look();
    if (ncclCommGetAsyncError(communicator_, &status) != ncclSuccess) fail("ncclCommGetAsyncError failed");
    queue(status, call);
  }
}

void NcclCommunicator::look() {
  ncclResult_t state = ncclSuccess;
  if (ncclCommGetAsyncError(communicator_, &state) != ncclSuccess) fail("ncclCommGetAsyncError failed");
  if (state != ncclSuccess && state != ncclInProgress) fail(words(state));
  const double waited = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun_).count();
  if (waited > end_.patience) fail(fmt::format("the others did not come within {:g} s", end_.patience));
  if (end_.beat) end_.beat();
  std::this_thread::yield();
}

std::string NcclCommunicator::words(ncclResult_t status) const {
  const char* last = communicator_ == nullptr ? nullptr : ncclGetLastError(communicator_);
  const std::string more = last == nullptr || *last == '\0' ? "" : fmt::format(" ({})", last);
  return ncclGetErrorString(status) + more;
}

void NcclCommunicator::fail(const std::string& why) {
  if (communicator_ != nullptr) ncclCommAbort(communicator_);
  communicator_ = nullptr;
  throw RankLost(
      fmt::format("rank {} on cuda:{}: NCCL gave up during {}: {}", end_.rank, end_.device, doing_, why));
}

}  // namespace stepcast
