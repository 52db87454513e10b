#pragma once

#include <deque>
#include <map>
#include <tuple>
#include <vector>

#include "runtime/collectives/rank_collectives.hpp"
#include "runtime/devices/rank_device.hpp"
#include "runtime/transport/transport.hpp"

namespace stepcast {

/// Floats that ranks of one process have sent each other and that have not been received: a queue for each
/// ordered pair of ranks.
using InProcessQueues = std::map<std::pair<RankId, RankId>, std::deque<float>>;

/// Transport between ranks of one process and one thread. It takes every float at once. A receiver must
/// run after the sender: `wait` throws std::logic_error, because nothing could arrive meanwhile.
class InProcessTransport : public Transport {
 public:
  InProcessTransport(InProcessQueues& queues, RankId rank, int ranks)
      : Transport(rank, ranks), queues_(queues) {}

  void wake() override {}
  std::int64_t send_some(RankId peer, const float* data, std::int64_t count) override;
  std::int64_t receive_some(RankId peer, float* target, std::int64_t count, OnReceive on_receive) override;
  void wait(const std::vector<RankId>& sending_to, const std::vector<RankId>& receiving_from) override;

 private:
  InProcessQueues& queues_;
};

/// The collectives of a plan whose ranks are all in one process. The n-th call of every rank of a group is
/// the same collective; when the last rank has called it, its rounds are executed on the memory of all ranks,
/// with the hooks of their bindings. The rounds are those of RankCollectives, so a real run has the same
/// values.
class InProcessCollectives {
 public:
  /// @param choices  the algorithms of all-reduces with `all_reduce: automatic`
  InProcessCollectives(const Plan& plan, AllReduceChoices choices);

  /// Enters a rank's call. @param call  number of earlier calls that the rank made on this communicator
  void join(CollectiveId id, std::size_t call, RankId rank, CollectiveBinding binding);

 private:
  struct Member {
    RankId rank;
    CollectiveBinding binding;
    const std::vector<std::vector<Round>>* phases = nullptr;
  };

  Member member(CollectiveId id, RankId rank, CollectiveBinding binding);

  const Plan& plan_;
  IdTable<RankId, RankCollectives> ranks_;
  /// For each communicator, group and call, the ranks that have joined.
  std::map<std::tuple<CommunicatorId, int, std::size_t>, std::vector<Member>> pending_;
};

}  // namespace stepcast
