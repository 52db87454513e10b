#include "sim/engine/work_clock.hpp"

namespace stepcast {

void WorkClock::wait(double work, Engine::Callback callback) {
  waiting_.push({work, sequence_++, std::move(callback)});
  arm();
}

void WorkClock::communication(int change) {
  communications_ += change;
  const double rate = communications_ > 0 ? 1 / slowdown_ : 1.0;
  if (rate == rate_) return;
  work_ = work_now();
  since_ = engine_.now();
  rate_ = rate;
  armed_work_ = -1;
  arm();
}

void WorkClock::arm() {
  if (waiting_.empty() || (armed_work_ >= 0 && armed_work_ <= waiting_.top().work)) return;
  armed_work_ = waiting_.top().work;
  const double date = since_ + (armed_work_ - work_) / rate_;
  engine_.at(date, [this, generation = ++generation_] { fire(generation); });
}

void WorkClock::fire(std::uint64_t generation) {
  if (generation != generation_) return;  // the rate changed, or an earlier wait came in
  const double due = armed_work_;
  armed_work_ = -1;
  // The requested date is reached, even where rounding leaves work_now() below `due`.
  while (!waiting_.empty() && waiting_.top().work <= due) {
    Engine::Callback callback = std::move(const_cast<Waiting&>(waiting_.top()).callback);
    waiting_.pop();
    callback();
  }
  arm();
}

}  // namespace stepcast
