#include "runtime/collectives/schedule_executor.hpp"

#include <algorithm>

namespace stepcast {
namespace {

bool overlap(const Slice& a, const Slice& b) {
  return a.begin < b.end && b.begin < a.end;
}

bool equal(const Slice& a, const Slice& b) {
  return a.begin == b.begin && a.end == b.end;
}

/// Orders the transfers of a round such that sends send the values from before the round, and sums into one
/// slice are made in the order of the edges, so that no bit depends on the order in which messages arrive.
void order_within(Round& round) {
  for (std::size_t at = 0; at < round.size(); ++at) {
    Transfer& receive = round[at];
    if (receive.way == Transfer::Way::send) continue;
    for (std::size_t i = 0; i < round.size(); ++i) {
      Transfer& other = round[i];
      const bool sends = other.way == Transfer::Way::send;
      if (!overlap(other.slice, receive.slice) || (!sends && i >= at)) continue;
      if (equal(other.slice, receive.slice)) {
        receive.after.push_back(i);
      } else if (sends) {
        other.copy_first = true;
      }
    }
  }
}

/// Execution of one round.
class RoundExecution {
 public:
  RoundExecution(Transport& transport, const Round& round, float* buffer, bool counted)
      : transport_(transport),
        round_(round),
        buffer_(buffer),
        counted_(counted),
        done_(round.size(), 0),
        copies_(round.size()) {
    for (std::size_t i = 0; i < round.size(); ++i) {
      const Slice& slice = round[i].slice;
      if (round[i].copy_first) copies_[i].assign(buffer + slice.begin, buffer + slice.end);
    }
  }

  void run() {
    while (true) {
      bool moved = false, finished = true;
      sending_to_.clear();
      receiving_from_.clear();
      for (std::size_t i = 0; i < round_.size(); ++i) {
        if (done_[i] == size(i) || behind_another(i)) continue;
        moved = advance(i) || moved;
        finished = finished && done_[i] == size(i);
      }
      if (finished && all_done()) return;
      if (!moved) transport_.wait(sending_to_, receiving_from_);
    }
  }

 private:
  /// Floats that a transfer moves; of a counted one that has not begun, the number that says how many.
  std::int64_t size(std::size_t index) const {
    const Slice& slice = round_[index].slice;
    if (!counted_) return slice.size();
    return done_[index] == 0 ? 1 : static_cast<std::int64_t>(buffer_[slice.begin]);
  }

  bool all_done() const {
    for (std::size_t i = 0; i < round_.size(); ++i) {
      if (done_[i] < size(i)) return false;
    }
    return true;
  }

  /// True if an earlier transfer with the same peer and direction is unfinished: transfers of a pair keep
  /// their order.
  bool behind_another(std::size_t index) const {
    for (std::size_t i = 0; i < index; ++i) {
      if (round_[i].peer == round_[index].peer && round_[i].way == round_[index].way && done_[i] < size(i)) {
        return true;
      }
    }
    return false;
  }

  bool advance(std::size_t index) {
    const Transfer& transfer = round_[index];
    std::int64_t& done = done_[index];
    const std::int64_t before = done;
    if (transfer.way == Transfer::Way::send) {
      const float* from = transfer.copy_first ? copies_[index].data() : buffer_ + transfer.slice.begin;
      done += transport_.send_some(RankId(transfer.peer), from + done, size(index) - done);
      if (done < size(index)) sending_to_.emplace_back(transfer.peer);
    } else {
      std::int64_t most = size(index);
      for (const std::size_t other : transfer.after) most = std::min(most, done_[other]);
      if (most == done) return false;
      done += transport_.receive_some(RankId(transfer.peer), buffer_ + transfer.slice.begin + done,
                                      most - done, transfer.on_receive);
      if (done < most) receiving_from_.emplace_back(transfer.peer);
    }
    return done > before;
  }

  Transport& transport_;
  const Round& round_;
  float* buffer_;
  bool counted_;
  std::vector<std::int64_t> done_;
  std::vector<std::vector<float>> copies_;
  std::vector<RankId> sending_to_, receiving_from_;
};

}  // namespace

std::vector<Round> rounds_of(const Schedule& schedule, int position, std::int64_t elements) {
  std::vector<Round> rounds;
  for (const Phase& phase : schedule.phases) {
    for (int number = 0; number < phase.rounds; ++number) {
      Round round;
      for (const Edge& edge : *phase.edges) {
        const int k = number - edge.delay;
        if (k < 0 || k >= phase.active || (edge.source != position && edge.target != position)) continue;
        const Slice slice = slice_of(schedule, phase, edge, k, elements);
        if (slice.size() == 0) continue;
        const bool sends = edge.source == position;
        round.push_back({.way = sends ? Transfer::Way::send : Transfer::Way::receive,
                         .peer = sends ? edge.target : edge.source,
                         .slice = slice,
                         .on_receive = phase.on_receive,
                         .after = {}});
      }
      order_within(round);
      if (!round.empty()) rounds.push_back(std::move(round));
    }
  }
  return rounds;
}

void execute_rounds(Transport& transport, const std::vector<Round>& rounds, float* buffer, bool counted) {
  for (const Round& round : rounds) RoundExecution(transport, round, buffer, counted).run();
}

}  // namespace stepcast
