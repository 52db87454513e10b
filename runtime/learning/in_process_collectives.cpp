#include "runtime/learning/in_process_collectives.hpp"

#include <algorithm>
#include <stdexcept>

#include "strategies/plan/plan.hpp"

namespace stepcast {
namespace {

void take(std::deque<float>& queue, float* target, std::int64_t count, OnReceive on_receive) {
  for (std::int64_t i = 0; i < count; ++i)
    target[i] = on_receive == OnReceive::reduce ? target[i] + queue[i] : queue[i];
  queue.erase(queue.begin(), queue.begin() + count);
}

/// One rank's way through the rounds of a phase. A round's sends leave before its first receive, so they
/// carry the values from before the round; its receives are taken in their order, so sums always have the
/// same bits.
class RankRounds {
 public:
  RankRounds(const std::vector<Round>& rounds, RankId rank, float* buffer, InProcessQueues& queues)
      : rounds_(rounds), rank_(rank), buffer_(buffer), queues_(queues) {}

  bool finished() const { return round_ == rounds_.size(); }

  /// Goes on until a message is missing. @returns whether anything was done
  bool advance() {
    bool moved = false;
    while (!finished()) {
      if (next_ == 0) send_all();
      if (!receive_ready(moved)) return moved;
      ++round_;
      next_ = 0;
      moved = true;
    }
    return moved;
  }

 private:
  void send_all() {
    if (sent_ > round_) return;
    ++sent_;
    for (const Transfer& one : rounds_[round_]) {
      if (one.way != Transfer::Way::send) continue;
      auto& queue = queues_[{rank_, RankId(one.peer)}];
      queue.insert(queue.end(), buffer_ + one.slice.begin, buffer_ + one.slice.end);
    }
  }

  /// @returns whether all receives of the round are done
  bool receive_ready(bool& moved) {
    const Round& round = rounds_[round_];
    for (; next_ < round.size(); ++next_) {
      const Transfer& one = round[next_];
      if (one.way != Transfer::Way::receive) continue;
      auto& queue = queues_[{RankId(one.peer), rank_}];
      if (std::ssize(queue) < one.slice.size()) return false;
      take(queue, buffer_ + one.slice.begin, one.slice.size(), one.on_receive);
      moved = true;
    }
    return true;
  }

  const std::vector<Round>& rounds_;
  RankId rank_;
  float* buffer_;
  InProcessQueues& queues_;
  std::size_t round_ = 0, next_ = 0, sent_ = 0;  ///< round; next transfer of it; rounds whose sends have left
};

void execute_phase(std::vector<RankRounds>& ranks) {
  bool all_finished = false;
  while (!all_finished) {
    bool moved = false;
    all_finished = true;
    for (RankRounds& rank : ranks) {
      moved = rank.advance() || moved;
      all_finished = all_finished && rank.finished();
    }
    if (!moved && !all_finished) throw std::logic_error("a collective waits for a message that nobody sends");
  }
}

}  // namespace

std::int64_t InProcessTransport::send_some(RankId peer, const float* data, std::int64_t count) {
  auto& queue = queues_[{rank(), peer}];
  queue.insert(queue.end(), data, data + count);
  return count;
}

std::int64_t InProcessTransport::receive_some(RankId peer, float* target, std::int64_t count,
                                              OnReceive on_receive) {
  auto& queue = queues_[{peer, rank()}];
  const std::int64_t ready = std::min<std::int64_t>(count, queue.size());
  take(queue, target, ready, on_receive);
  return ready;
}

void InProcessTransport::wait(const std::vector<RankId>&, const std::vector<RankId>&) {
  throw std::logic_error("a rank waits for a rank of its own thread");
}

InProcessCollectives::InProcessCollectives(const Plan& plan, AllReduceChoices choices) : plan_(plan) {
  // No algorithm is chosen for a buffer of 0 bytes, and any algorithm leaves it as it is.
  for (std::size_t i = 0; i < plan.collectives.size(); ++i) {
    const Collective& collective = plan.collectives[i];
    const Communicator& communicator = communicator_of(plan, collective);
    if (has_automatic_algorithm(plan, collective) && !choices.contains(CollectiveId(i)))
      choices[CollectiveId(i)] =
          candidates(communicator.all_reduce, {communicator.size, communicator.ranks_per_node}).front();
  }
  for (const RankId rank : first_ranks(plan.endpoints.size())) ranks_.emplace_back(plan, choices, rank);
}

InProcessCollectives::Member InProcessCollectives::member(CollectiveId id, RankId rank,
                                                          CollectiveBinding binding) {
  RankCollectives& own = ranks_[rank];
  const Slice slice = own.owned_slice(id, binding.memory.size());
  binding.memory = binding.memory.subspan(slice.begin, slice.size());
  const std::int64_t elements =
      binding.uncompressed_elements < 0 ? slice.size() : binding.uncompressed_elements;
  return {rank, std::move(binding), &own.phases(id, elements)};
}

void InProcessCollectives::join(CollectiveId id, std::size_t call, RankId rank, CollectiveBinding binding) {
  const Collective& collective = plan_.collectives.at(id.index());
  const Communicator& communicator = communicator_of(plan_, collective);
  const auto place = std::ranges::find(communicator.ranks, rank) - communicator.ranks.begin();
  const auto pending =
      pending_.try_emplace({collective.communicator, static_cast<int>(place) / communicator.size, call})
          .first;
  std::vector<Member>& members = pending->second;
  members.push_back(member(id, rank, std::move(binding)));
  if (std::ssize(members) < communicator.size) return;
  InProcessQueues queues;
  for (std::size_t phase = 0; phase < members.front().phases->size(); ++phase) {
    std::vector<RankRounds> rounds;
    for (const Member& one : members) {
      if (one.binding.before_phase) one.binding.before_phase(phase);
      rounds.emplace_back((*one.phases)[phase], one.rank, one.binding.memory.data(), queues);
    }
    execute_phase(rounds);
    for (const Member& one : members) {
      if (one.binding.after_phase) one.binding.after_phase(phase);
    }
  }
  pending_.erase(pending);
}

}  // namespace stepcast
