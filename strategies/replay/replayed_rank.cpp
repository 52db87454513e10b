#include "strategies/replay/replayed_rank.hpp"

#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <queue>
#include <utility>

namespace stepcast {

/// Replays the nodes of one rank. Each operation that was started has a small program that waits for it.
class ReplayPlayer {
 public:
  ReplayPlayer(Worker& worker, const ReplayedRank& rank) : worker_(worker), rank_(rank) {}

  void begin_step() {
    left_.clear();
    for (const ReplayedNode& node : rank_.nodes) left_.push_back(node.after);
    called_.assign(rank_.calls.size(), 0);
    may_call_.assign(rank_.nodes.size(), false);
    ended_ = 0;
    for (std::size_t i = 0; i < left_.size(); ++i) {
      if (left_[i] == 0) ready_.push(i);
    }
    start_ready();
  }

  /// Awaitable of the end of all nodes.
  struct AllEnded {
    ReplayPlayer& player;
    bool await_ready() const { return player.has_ended(); }
    void await_suspend(std::coroutine_handle<> handle) { player.waiter_ = handle; }
    void await_resume() const {
      if (player.error_) std::rethrow_exception(player.error_);
    }
  };

 private:
  bool has_ended() const { return error_ || ended_ == rank_.nodes.size(); }

  const ReplayedNode& node(int i) const { return rank_.nodes[i]; }

  /// Starts what is ready, the lowest first. Nodes that become ready meanwhile wait for their turn in this
  /// loop, so that the depth of calls does not grow with the trace.
  void start_ready() {
    if (starting_) return;
    starting_ = true;
    running_.remove_if([](const Program& one) { return one.done(); });
    while (!ready_.empty()) {
      const int i = ready_.top();
      ready_.pop();
      start(i);
    }
    starting_ = false;
  }

  void start(int i) {
    const ReplayedNode& one = node(i);
    switch (one.kind) {
      case ReplayedNode::Kind::nothing:
        return end(i);
      case ReplayedNode::Kind::device:
        return watch(i, worker_.start_local({one.name.c_str(), one.duration, nullptr}));
      case ReplayedNode::Kind::host:
        hosted_.push_back(i);
        if (hosted_.size() == 1) watch(i, worker_.start_collective(one.collective));
        return;
      case ReplayedNode::Kind::collective:
        may_call_[i] = true;
        return start_calls(one.communicator);
      case ReplayedNode::Kind::send:
        return watch(i, worker_.start_send(one.peer, one.message));
      case ReplayedNode::Kind::receive:
        return watch(i, worker_.start_receive(one.message.tag, one.peer));
    }
  }

  /// Starts the next collectives of a communicator, as far as their turn has come.
  void start_calls(CommunicatorId communicator) {
    const std::vector<int>& calls = rank_.calls[communicator.index()];
    std::size_t& next = called_[communicator.index()];
    while (next < calls.size() && may_call_[calls[next]]) {
      const int i = calls[next++];
      watch(i, worker_.start_collective(node(i).collective));
    }
  }

  void watch(int i, Pending operation) {
    running_.push_back(wait_for(*this, i, std::move(operation)));
    running_.back().start();
  }

  static Program wait_for(ReplayPlayer& player, int i, Pending operation);

  void end(int i) {
    ++ended_;
    for (const int later : node(i).next) {
      if (--left_[later] == 0) ready_.push(later);
    }
    if (node(i).kind == ReplayedNode::Kind::host) {
      hosted_.pop_front();
      if (!hosted_.empty())
        watch(hosted_.front(), worker_.start_collective(node(hosted_.front()).collective));
    }
    start_ready();
    if (has_ended() && waiter_) std::exchange(waiter_, nullptr).resume();
  }

  Worker& worker_;
  const ReplayedRank& rank_;
  std::vector<int> left_;            ///< by node: nodes before it that have not ended
  std::vector<std::size_t> called_;  ///< by communicator
  std::vector<bool> may_call_;       ///< by node
  std::priority_queue<int, std::vector<int>, std::greater<>> ready_;
  std::deque<int> hosted_;  ///< nodes of the host, the first of which runs
  std::list<Program> running_;
  std::size_t ended_ = 0;
  bool starting_ = false;
  std::coroutine_handle<> waiter_;
  std::exception_ptr error_;
};

/// Outside of the class, because clang 14 cannot compile an inline coroutine with sanitizers.
Program ReplayPlayer::wait_for(ReplayPlayer& player, int i, Pending operation) {
  try {
    co_await player.worker_.finished(std::move(operation));
  } catch (...) {
    player.error_ = std::current_exception();
  }
  player.end(i);
}

namespace {

/// @param player  lives as long as the program's frame, because the program goes on inside a call of the
/// player
Program replay_steps(std::shared_ptr<ReplayPlayer> player, Worker& worker, int steps) {
  ReplayPlayer::AllEnded all_ended{*player};
  for (int step = 0; step < steps; ++step) {
    player->begin_step();
    co_await all_ended;
    worker.end_step();
  }
}

}  // namespace

Program replay(Worker& worker, const ReplayedRank& rank, int steps) {
  return replay_steps(std::make_shared<ReplayPlayer>(worker, rank), worker, steps);
}

}  // namespace stepcast
