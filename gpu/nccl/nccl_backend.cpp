#include "gpu/nccl/nccl_backend.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "gpu/nccl/nccl_group.hpp"

namespace stepcast {

#ifdef STEPCAST_HAS_NCCL
namespace {

class NcclLink final : public DeviceChannel {
 public:
  /// The first message connects the two ranks (JoinedGroup::connect), so it is sent here.
  NcclLink(const NcclRank& self, const std::string& unique_id)
      : stream_(self.device), communicator_(self, unique_id) {
    const auto one = cudnn::allocate_bytes(sizeof(float), stream_.get());
    auto* value = static_cast<float*>(one.get());
    self.group_rank == 0 ? send(value, 1, nullptr) : receive(value, 1, nullptr);
  }

  void send(const float* from, std::int64_t floats, const DeviceMemory::Event& after) override {
    stream_.begin_after(after);
    communicator_.start_operation("sending a message");
    communicator_.wait_until_enqueued(
        ncclSend(from, floats, ncclFloat, 1, communicator_.get(), stream_.get()), "ncclSend");
    stream_.finish(communicator_);
  }

  void receive(float* to, std::int64_t floats, const DeviceMemory::Event& after) override {
    stream_.begin_after(after);
    communicator_.start_operation("receiving a message");
    communicator_.wait_until_enqueued(ncclRecv(to, floats, ncclFloat, 0, communicator_.get(), stream_.get()),
                                      "ncclRecv");
    stream_.finish(communicator_);
  }

 private:
  NcclStream stream_;
  NcclCommunicator communicator_;
};

}  // namespace

std::unique_ptr<DeviceChannel> join_nccl_link(const NcclRank& self, const std::string& unique_id) {
  return std::make_unique<NcclLink>(self, unique_id);
}
#else
std::unique_ptr<DeviceChannel> join_nccl_link(const NcclRank&, const std::string&) {
  nccl_unique_id();  // throws
  return nullptr;
}
#endif

namespace {

/// Thread blocks of a link. All links of a rank must fit on its GPU at once: ranks whose links wait for
/// multiprocessors could wait for each other. A server of 7 workers has 14 links, a GPU about 130
/// multiprocessors.
constexpr int kLinkBlocks = 8;
/// Thread blocks of a group, so that a collective fits next to the links: 14 x 8 + 16 are at most 132. NCCL
/// would take up to 32.
constexpr int kGroupBlocks = 16;

/// Ranks of the group that a rank belongs to, by their rank in NCCL's communicator; empty if it is in none.
std::vector<int> group_ranks(const Communicator& communicator, RankId rank) {
  const GroupPlace own = place_in_group(communicator, rank);
  std::vector<int> ranks(own.number < 0 ? 0 : communicator.size);
  for (const RankId other : communicator.ranks) {
    const GroupPlace place = place_in_group(communicator, other);
    if (own.number >= 0 && place.group == own.group) ranks[place.number] = other.value;
  }
  return ranks;
}

}  // namespace

NcclGroup& NcclBackend::group_of(const std::vector<int>& ranks) {
  auto& group = groups_[ranks];
  if (group != nullptr) return *group;
  const std::string key = fmt::format("nccl-{}", fmt::join(ranks, "-"));
  NcclRank self = self_;
  self.group_size = ranks.size();
  self.max_blocks = kGroupBlocks;
  self.group_rank = std::ranges::find(ranks, self_.rank) - ranks.begin();
  if (self.group_rank == 0) store_.put(key, nccl_unique_id());
  group = join_nccl(self, store_.get(ranks.front(), key));
  return *group;
}

std::unique_ptr<DeviceChannel> NcclBackend::link(RankId from, RankId to) {
  const std::string key = fmt::format("nccl-link-{}-{}", from.value, to.value);
  NcclRank self = self_;
  self.group_size = 2;
  self.group_rank = RankId(self_.rank) == from ? 0 : 1;
  self.max_blocks = kLinkBlocks;
  if (self.group_rank == 0) store_.put(key, nccl_unique_id());
  return join_nccl_link(self, store_.get(from.value, key));
}

CollectiveBackend NcclBackend::collectives_of(const Plan& plan) {
  std::vector<NcclGroup*> of_communicator;
  for (const Communicator& one : plan.communicators) {
    const std::vector<int> ranks = group_ranks(one, RankId(self_.rank));
    of_communicator.push_back(ranks.size() > 1 ? &group_of(ranks) : nullptr);
  }
  return [rank = RankId(self_.rank), of_communicator, &plan](const CollectiveCall& work) {
    const Collective& collective = plan.collectives.at(work.id.index());
    NcclGroup* group = of_communicator.at(collective.communicator.index());
    group->run(library_collective(plan, work.id, rank, work.elements, *work.phases), work.memory,
               work.elements, work.ready);
  };
}

}  // namespace stepcast
