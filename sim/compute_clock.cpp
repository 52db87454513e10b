#include "sim/compute_clock.hpp"

namespace stepcast {

void ComputeClock::wait(double work, Engine::Callback callback) {
  waits_.push({work, sequence_++, std::move(callback)});
  arm();
}

void ComputeClock::communication(int begun_or_ended) {
  communications_ += begun_or_ended;
  const double rate = communications_ > 0 ? 1 / slowdown_ : 1.0;
  if (rate == rate_) return;
  work_ = work_now();
  since_ = engine_.now();
  rate_ = rate;
  armed_work_ = -1;
  arm();
}

void ComputeClock::arm() {
  if (waits_.empty() || (armed_work_ >= 0 && armed_work_ <= waits_.top().work)) return;
  armed_work_ = waits_.top().work;
  const double date = since_ + (armed_work_ - work_) / rate_;
  engine_.at(date, [this, generation = ++generation_] { fire(generation); });
}

void ComputeClock::fire(std::uint64_t generation) {
  if (generation != generation_) return;  // the rate changed, or an earlier wait came in
  const double due = armed_work_;
  armed_work_ = -1;
  // The date that was asked for is reached, whatever rounding makes of work_now().
  while (!waits_.empty() && waits_.top().work <= due) {
    Engine::Callback callback = std::move(const_cast<Wait&>(waits_.top()).callback);
    waits_.pop();
    callback();
  }
  arm();
}

}  // namespace stepcast
