#include "sim/workers/step_statistics.hpp"

#include <algorithm>
#include <limits>

#include "strategies/plan/run_conditions.hpp"

namespace stepcast {

void StepStatistics::add(std::size_t program, int step, const ProgramStep& report) {
  ends_[program].push_back(now_());
  all_.members += report.members;
  all_.work_sum += report.work_sum;
  all_.loading += report.members * report.loading;
  ProgramStep& total = open_[step];
  total.members += report.members;
  total.work_sum += report.work_sum;
  total.work_max = std::max(total.work_max, report.work_max);
  total.loading = std::max(total.loading, report.loading);
  if (total.members < members_) return;
  close(total);
  open_.erase(step);
}

void StepStatistics::close(const ProgramStep& total) {
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

std::size_t StepStatistics::first_to_end() const {
  std::size_t first = 0;
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < ends_.size(); ++i) {
    if (ends_[i].empty() || ends_[i].back() >= least) continue;
    least = ends_[i].back();
    first = i;
  }
  return first;
}

StepSeconds StepStatistics::steady_state() const {
  StepSeconds step;
  step.seconds = own_pace_step_seconds(ends_);
  step.compute = all_.work_sum / all_.members;
  step.loading = all_.loading / all_.members;
  step.exposed = std::max(0.0, step.seconds - step.compute - step.loading);
  step.communication = busy_() / all_.members;
  return step;
}

}  // namespace stepcast
