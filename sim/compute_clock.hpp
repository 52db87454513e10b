#pragma once

#include <functional>
#include <queue>
#include <vector>

#include "sim/engine.hpp"

namespace stepcast {

/// How far work gets on devices that all slow down by the same factor while they communicate.
///
/// `work(t)` = integral of the rate from 0 to t [s of undisturbed work]. A worker's clocks are kept in this
/// coordinate, so that a change of rate moves every one of them at once.
class ComputeClock {
 public:
  ComputeClock(Engine& engine, double slowdown) : engine_(engine), slowdown_(slowdown) {}

  double work_now() const { return work_ + (engine_.now() - since_) * rate_; }

  /// Calls `callback` when work_now() reaches `work`; calls of equal work come in the order of asking.
  template <class Function>
  void at_work(double work, Function&& callback) {
    if (slowdown_ == 1) return engine_.at(work, std::forward<Function>(callback));  // work is time
    wait(work, std::forward<Function>(callback));
  }

  /// A communication began or ended; while any is under way work goes on at 1 / slowdown.
  void communication(int begun_or_ended);

 private:
  struct Wait {
    double work;
    std::uint64_t sequence;
    Engine::Callback callback;
    bool operator>(const Wait& other) const {
      return work != other.work ? work > other.work : sequence > other.sequence;
    }
  };

  void wait(double work, Engine::Callback callback);
  void arm();
  void fire(std::uint64_t generation);

  Engine& engine_;
  double slowdown_;
  double work_ = 0, since_ = 0, rate_ = 1;
  int communications_ = 0;
  std::uint64_t sequence_ = 0, generation_ = 0;
  double armed_work_ = -1;
  std::priority_queue<Wait, std::vector<Wait>, std::greater<>> waits_;
};

}  // namespace stepcast
