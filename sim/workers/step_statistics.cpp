#include "sim/workers/step_statistics.hpp"

#include <algorithm>
#include <limits>

#include "strategies/plan/run_conditions.hpp"

namespace stepcast {

void RunRecords::step_ended(std::size_t program, double now) {
  if (now > last_end_) close();
  last_end_ = now;
  ended_.push_back(program);
}

/// Stores the counts of the programs that ended a step at last_end_: that date is over, so no record can
/// follow.
void RunRecords::close() {
  for (const std::size_t program : ended_) {
    if (program >= counts_.size()) counts_.resize(program + 1);
    std::vector<std::size_t>& counts = counts_[program];
    counts.clear();
    for (const auto& [name, values] : lists_) counts.push_back(values->size());
  }
  ended_.clear();
  last_end_ = std::numeric_limits<double>::infinity();
}

std::map<std::string, std::size_t> RunRecords::counts_at_end(std::size_t program) {
  close();
  std::map<std::string, std::size_t> counts;
  for (const auto& [name, values] : records_) counts[name] = 0;
  if (program >= counts_.size()) return counts;
  for (std::size_t i = 0; i < counts_[program].size(); ++i) counts[lists_[i].first] = counts_[program][i];
  return counts;
}

Records first_records(Records records, const std::map<std::string, std::size_t>& counts) {
  for (const auto& [name, count] : counts) {
    const auto found = records.find(name);
    if (found != records.end() && count < found->second.size()) found->second.resize(count);
  }
  return records;
}

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
