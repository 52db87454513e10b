#include "sim/step_book.hpp"

#include <algorithm>
#include <limits>

#include "strategies/own_pace.hpp"

namespace stepcast {

void StepBook::add(std::size_t program, int step, const StepShare& share) {
  ends_[program].push_back(now_());
  all_.members += share.members;
  all_.work_sum += share.work_sum;
  all_.loading += share.members * share.loading;
  StepShare& total = open_[step];
  total.members += share.members;
  total.work_sum += share.work_sum;
  total.work_max = std::max(total.work_max, share.work_max);
  total.loading = std::max(total.loading, share.loading);
  if (total.members < members_) return;
  close(total);
  open_.erase(step);
}

void StepBook::close(const StepShare& total) {
  StepSeconds seconds;
  seconds.seconds = now_() - last_end_;
  seconds.compute = total.work_sum / members_;
  seconds.straggler = total.work_max - seconds.compute;
  seconds.loading = total.loading;
  seconds.exposed = std::max(0.0, seconds.seconds - total.work_max - total.loading);
  seconds.communication = busy_() - last_busy_;
  steps_.push_back(seconds);
  last_end_ = now_();
  last_busy_ = busy_();
}

std::size_t StepBook::first_to_end() const {
  std::size_t first = 0;
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < ends_.size(); ++i) {
    if (ends_[i].empty() || ends_[i].back() >= least) continue;
    least = ends_[i].back();
    first = i;
  }
  return first;
}

StepSeconds StepBook::steady_state() const {
  StepSeconds step;
  step.seconds = own_pace_step_seconds(ends_);
  step.compute = all_.work_sum / all_.members;
  step.loading = all_.loading / all_.members;
  step.exposed = std::max(0.0, step.seconds - step.compute - step.loading);
  step.communication = busy_() / all_.members;
  return step;
}

}  // namespace stepcast
