#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "gpu/nccl/nccl_group.hpp"
#include "runtime/p2p/device_payloads.hpp"
#include "runtime/rendezvous/store.hpp"
#include "runtime/runs/real_worker.hpp"

namespace stepcast {

/// Joins a communicator of two ranks, of which rank 0 sends and rank 1 receives. Ranks that send in both
/// directions have two of these, so that messages of one direction never wait for those of the other.
/// @throws RankLost; InputError if this program was built without NCCL
std::unique_ptr<DeviceChannel> join_nccl_link(const NcclRank& self, const std::string& unique_id);

/// The NCCL communicators of a rank, each joined once, and the collectives of plans on them.
class NcclBackend {
 public:
  /// @param store  outlives this object
  /// @param self   group_rank and group_size are set for each communicator
  NcclBackend(Store& store, NcclRank self) : store_(store), self_(self) {}

  /// Joins the communicators of a plan, which outlives the result. All ranks call this with the same plans in
  /// the same order.
  CollectiveBackend collectives_of(const Plan& plan);
  /// This rank's end of a link for messages; returns when the other end is there. Thread-safe.
  std::unique_ptr<DeviceChannel> link(RankId from, RankId to);
  /// The communicator of these ranks of the run, this one included, ordered by their rank in it.
  NcclGroup& group_of(const std::vector<int>& ranks);

 private:
  Store& store_;
  NcclRank self_;
  std::map<std::vector<int>, std::unique_ptr<NcclGroup>> groups_;
};

}  // namespace stepcast
