#include "gpu/nccl_carrier.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace stepcast {
namespace {

/// All links of a rank must fit on its GPU at once: one that waits for a place could be what the other rank's
/// waits for. A server of 7 workers has 14, and a GPU about 130 places.
constexpr int kLinkBlocks = 8;

/// Ranks of the group that a rank is in, by the library's numbers; empty: it is in none.
std::vector<int> own_group(const Communicator& communicator, int rank) {
  const GroupPlace own = place_in_group(communicator, rank);
  std::vector<int> ranks(own.number < 0 ? 0 : static_cast<std::size_t>(communicator.size));
  for (const int other : communicator.ranks) {
    const GroupPlace place = place_in_group(communicator, other);
    if (own.number >= 0 && place.group == own.group) ranks[static_cast<std::size_t>(place.number)] = other;
  }
  return ranks;
}

}  // namespace

NcclGroup& NcclCarrier::group_of(const std::vector<int>& ranks) {
  auto& group = groups_[ranks];
  if (group != nullptr) return *group;
  const std::string key = fmt::format("nccl-{}", fmt::join(ranks, "-"));
  NcclEnd end = end_;
  end.size = static_cast<int>(ranks.size());
  end.number = static_cast<int>(std::ranges::find(ranks, end_.rank) - ranks.begin());
  if (end.number == 0) store_.put(key, nccl_unique_id());
  group = join_nccl(end, store_.get(ranks.front(), key));
  return *group;
}

std::unique_ptr<DeviceLink> NcclCarrier::link(int from, int to) {
  const std::string key = fmt::format("nccl-link-{}-{}", from, to);
  NcclEnd end = end_;
  end.size = 2;
  end.number = end_.rank == from ? 0 : 1;
  end.most_blocks = kLinkBlocks;
  if (end.number == 0) store_.put(key, nccl_unique_id());
  return join_nccl_link(end, store_.get(from, key));
}

Carry NcclCarrier::carry(const Plan& plan) {
  std::vector<NcclGroup*> of_communicator;
  for (const Communicator& one : plan.communicators) {
    const std::vector<int> ranks = own_group(one, end_.rank);
    of_communicator.push_back(ranks.size() > 1 ? &group_of(ranks) : nullptr);
  }
  return [rank = end_.rank, of_communicator, &plan](const CarriedWork& work) {
    const Collective& collective = plan.collectives.at(static_cast<std::size_t>(work.index));
    NcclGroup* group = of_communicator.at(static_cast<std::size_t>(collective.communicator));
    group->run(group_call(plan, work.index, rank, work.elements, *work.phases), work.memory, work.elements,
               work.ready);
  };
}

}  // namespace stepcast
