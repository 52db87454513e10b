#pragma once

#include <functional>
#include <queue>
#include <vector>

#include "sim/engine/engine.hpp"

namespace stepcast {

/// Progress of compute on devices that all slow down by the same factor while they communicate.
///
/// `work(t)` = integral of the rate from 0 to t [s of undisturbed compute]. A worker's clocks are kept in
/// this coordinate, so that one change of rate moves all of them.
class WorkClock {
 public:
  WorkClock(Engine& engine, double slowdown) : engine_(engine), slowdown_(slowdown) {}

  double work_now() const { return work_ + (engine_.now() - since_) * rate_; }

  /// Calls `callback` when work_now() reaches `work`; calls of equal work are made in the order of the
  /// requests.
  template <class Function>
  void at_work(double work, Function&& callback) {
    if (slowdown_ == 1) return engine_.at(work, std::forward<Function>(callback));  // work is time
    wait(work, std::forward<Function>(callback));
  }

  /// Reports that a communication began (+1) or ended (-1). While any is active, compute runs at the rate
  /// 1 / slowdown.
  void communication(int change);

 private:
  struct Waiting {
    double work;
    std::uint64_t sequence;
    Engine::Callback callback;
    bool operator>(const Waiting& other) const {
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
  std::priority_queue<Waiting, std::vector<Waiting>, std::greater<>> waiting_;
};

}  // namespace stepcast
