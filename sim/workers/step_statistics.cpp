#include "sim/workers/step_statistics.hpp"

#include <algorithm>
#include <array>
#include <boost/math/special_functions/erf.hpp>
#include <cmath>
#include <limits>
#include <numbers>
#include <span>

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
  all_.host_sum += report.host_sum;
  all_.loading += report.members * report.loading;
  ProgramStep& total = open_[step];
  total.members += report.members;
  total.work_sum += report.work_sum;
  total.host_sum += report.host_sum;
  total.busy_max = std::max(total.busy_max, report.busy_max);
  total.loading = std::max(total.loading, report.loading);
  if (total.members < members_) return;
  close(total);
  open_.erase(step);
}

void StepStatistics::close(const ProgramStep& total) {
  StepSeconds seconds;
  seconds.seconds = now_() - last_end_;
  seconds.compute = total.work_sum / members_;
  seconds.host = total.host_sum / members_;
  seconds.waiting = total.busy_max - seconds.compute - seconds.host;
  seconds.loading = total.loading;
  seconds.exposed = std::max(0.0, seconds.seconds - total.busy_max - total.loading);
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

StepSeconds StepStatistics::steady_state(const Plan& plan) const {
  StepSeconds step;
  step.seconds = asynchronous_step_seconds(plan, ends_);
  step.compute = all_.work_sum / all_.members;
  step.host = all_.host_sum / all_.members;
  step.loading = all_.loading / all_.members;
  step.exposed = std::max(0.0, step.seconds - step.compute - step.host - step.loading);
  step.communication = busy_() / all_.members;
  return step;
}

namespace {

double of(const LayerSeconds& seconds, Work pass) {
  switch (pass) {
    case Work::forward:
      return seconds.forward;
    case Work::backward:
      return seconds.backward;
    case Work::update:
      return seconds.update;
  }
  return 0;
}

}  // namespace

ComputeTimes::Prefix::Prefix(const std::vector<LayerSeconds>& layers) {
  for (std::size_t pass = 0; pass < sums_.size(); ++pass) {
    std::vector<double>& sums = sums_[pass];
    sums.push_back(0);
    for (const LayerSeconds& layer : layers) {
      sums.push_back(sums.back() + of(layer, static_cast<Work>(pass)));
      layers_[pass].push_back(sums.back() - sums[sums.size() - 2]);
    }
  }
}

ComputeTimes::ComputeTimes(const Workload& workload)
    : median_(workload.median),
      has_host_(!workload.host.empty()),
      host_prefix_(workload.host),
      sample_ranks_(workload.sample_ranks) {
  prefixes_.emplace_back(workload.median);
  for (const auto& sample : workload.samples) prefixes_.emplace_back(sample);
  for (std::size_t pass = 0; pass < timed_layers_.size(); ++pass) {
    for (std::size_t layer = 0; layer < median_.size(); ++layer) {
      if (of(median_[layer], static_cast<Work>(pass)) > 0) timed_layers_[pass].push_back(layer);
    }
  }
}

/// Sum over the layers that take time, each with its own factor.
double ComputeTimes::drawn_seconds(Work pass, LayerRange layers, const Draw& draw) const {
  const std::vector<int>& all = timed_layers_[ordinal(pass)];
  std::array<double, kNormalBlock> factors{};
  double sum = 0;
  auto next = std::ranges::lower_bound(all, layers.first);
  const auto last = std::ranges::lower_bound(all, layers.last);
  while (next != last) {
    const std::span block(next, std::min<std::size_t>(kNormalBlock, last - next));
    layer_factors(draw, pass, block, std::span(factors).first(block.size()));
    for (std::size_t i = 0; i < block.size(); ++i) sum += factors[i] * of(median_[block[i]], pass);
    next += block.size();
  }
  return sum;
}

double ComputeTimes::seconds(Work pass, LayerRange layers, const Draw& draw) const {
  if (draw.layer_sigma > 0) return draw.factor * drawn_seconds(pass, layers, draw);
  return draw.factor * prefixes_[draw.sample + 1].seconds(pass, layers);
}

double ComputeTimes::host_seconds(Work pass, LayerRange layers) const {
  return has_host_ ? host_prefix_.seconds(pass, layers) : 0;
}

IssuedWork ComputeTimes::issued(Work pass, LayerRange layers, const Draw& draw, double factor) const {
  const std::vector<double>& device = prefixes_[draw.sample + 1].layers(pass);
  const std::vector<double>& host = host_prefix_.layers(pass);
  const auto seconds = [&](int layer) {
    return draw.layer_sigma > 0 ? this->seconds(pass, {layer, layer + 1}, draw) : draw.factor * device[layer];
  };
  IssuedWork all;
  for (int i = 0; i < layers.last - layers.first; ++i) {
    const int layer = pass == Work::backward ? layers.last - 1 - i : layers.first + i;
    all = then(all, issued_layer(factor * seconds(layer), has_host_ ? host[layer] : 0));
  }
  return all;
}

MemberClocks::MemberClocks(const Simulation& simulation, const Role& role, int first, int members)
    : simulation_(simulation), first_rank_(role.rank(first)) {
  const bool one_clock = simulation.noise.is_none() || !role.training;
  members_.resize(one_clock ? 1 : members);
}

void MemberClocks::draw_step(int step, const MeasuredSteps& samples) {
  for (std::size_t i = 0; i < members_.size(); ++i) {
    const int endpoint = simulation_.plan->endpoints[rank(i)];
    const int key = simulation_.noise.per_node ? simulation_.platform->node_of(endpoint) : rank(i).value;
    members_[i].draw = draw(simulation_.noise, simulation_.seed, key, step, samples);
  }
}

void MemberClocks::compute(Work pass, LayerRange layers, const ComputeTimes& times) {
  const double factor = simulation_.compute_factor, host = times.host_seconds(pass, layers);
  for (Member& member : members_) {
    const double seconds = factor * times.seconds(pass, layers, member.draw);
    const double unhindered = member.clock + seconds;
    double end = unhindered;
    if (member.host + host > member.clock)  // else all is issued before the device begins
      end = std::max(end, member.host + times.issued(pass, layers, member.draw, factor).lag);
    member.clock = end;
    member.host += host;
    member.work += seconds;
    member.host_wait += end - unhindered;
  }
}

void MemberClocks::synchronize() {
  for (Member& member : members_) member.host = std::max(member.host, member.clock);
}

void MemberClocks::add_busy_time(double seconds, double factor, double from) {
  for (Member& member : members_) {
    const double taken = factor * member.draw.factor * seconds;
    member.clock = std::max(member.clock, from) + taken;
    member.work += taken;
  }
}

void MemberClocks::wait_until(double end, const Lags& lags) {
  const bool apart = lags != nullptr && lags->size() == members_.size();
  for (std::size_t i = 0; i < members_.size(); ++i)
    members_[i].clock = std::max(members_[i].clock, end - (apart ? (*lags)[i] : 0));
}

double MemberClocks::wait_until(std::size_t member, double end) {
  double& clock = members_[member].clock;
  const double behind = std::max(0.0, end - clock);
  clock = std::max(clock, end);
  return behind;
}

std::vector<double> MemberClocks::clocks() const {
  std::vector<double> clocks;
  clocks.reserve(members_.size());
  for (const Member& member : members_) clocks.push_back(member.clock);
  return clocks;
}

double MemberClocks::latest() const {
  double latest = 0;
  for (const Member& member : members_) latest = std::max(latest, member.clock);
  return latest;
}

std::vector<std::pair<int, double>> MemberClocks::layer_ends(Work pass, LayerRange layers,
                                                             const ComputeTimes& times, double begin) const {
  std::vector<std::pair<int, double>> ends;
  double sum = 0;
  for (int i = 0; i < layers.last - layers.first; ++i) {
    const int layer = pass == Work::backward ? layers.last - 1 - i : layers.first + i;
    sum += times.seconds(pass, {layer, layer + 1}, members_.front().draw);
    ends.emplace_back(layer, sum);
  }
  for (auto& [layer, end] : ends) end = begin + (sum > 0 ? end / sum : 1) * (latest() - begin);
  return ends;
}

Lags MemberClocks::lags() const {
  if (members_.size() == 1) return nullptr;
  std::vector<double> lags;
  lags.reserve(members_.size());
  const double last = latest();
  for (const Member& member : members_) lags.push_back(last - member.clock);
  return std::make_shared<const std::vector<double>>(std::move(lags));
}

Lags MemberClocks::group_lags(const Communicator& all, const IdTable<RankId, int>& position) const {
  const Lags alone = all.groups() == 1 ? nullptr : lags();
  if (alone == nullptr) return nullptr;
  std::vector<double> own = *alone;
  const auto group = [&](std::size_t i) -> std::size_t { return position[rank(i)] / all.size; };
  std::vector<double> least(all.groups(), 1e300);
  for (std::size_t i = 0; i < own.size(); ++i) least[group(i)] = std::min(least[group(i)], own[i]);
  for (std::size_t i = 0; i < own.size(); ++i) own[i] = least[group(i)];
  return std::make_shared<const std::vector<double>>(std::move(own));
}

void MemberClocks::end_step(ProgramStep& step) {
  const double weight = 1.0 * step.members / members_.size();
  for (Member& member : members_) {
    step.work_sum += weight * member.work;
    step.host_sum += weight * member.host_wait;
    step.busy_max = std::max(step.busy_max, member.work + member.host_wait);
    member.work = member.host_wait = 0;
  }
  synchronize();
}

double slowest_device_factor(const Plan& plan, const Noise& noise) {
  const double devices = plan.devices;
  if (plan.asynchronous || devices <= 1) return 1;
  const double u = (devices - 0.375) / (devices + 0.25);
  const double deviations = -std::numbers::sqrt2 * boost::math::erfc_inv(2 * u);
  return std::exp(noise.device_spread * deviations);
}

void attribute_to_slowest(double factor, std::vector<StepSeconds>& steps) {
  for (StepSeconds& step : steps) {
    const double of_median_device = step.compute / factor;
    step.waiting += step.compute - of_median_device;
    step.compute = of_median_device;
  }
}

}  // namespace stepcast
