#include "sim/patterns/sampled_time.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "sim/patterns/message_simulation.hpp"

namespace stepcast {
namespace {

constexpr int kFirstRounds = 8;
constexpr double kSettledError = 0.001;

int longest_phase(const Schedule& schedule) {
  int longest = 1;
  for (const Phase& phase : schedule.phases) longest = std::max(longest, phase.active);
  return longest;
}

/// The schedule with its longest phases shortened to `rounds` rounds; the size of messages does not change.
Schedule shortened(const Schedule& schedule, int rounds) {
  Schedule shorter = schedule;
  const int longest = longest_phase(schedule);
  for (Phase& phase : shorter.phases) {
    if (phase.active != longest) continue;
    phase.rounds -= longest - rounds;
    phase.active = rounds;
  }
  return shorter;
}

}  // namespace

double sampled_messages(const Schedule& schedule) {
  const int longest = longest_phase(schedule), rounds = 7 * kFirstRounds;  // 8 + 16 + 32
  return message_count(longest <= rounds ? schedule : shortened(schedule, rounds));
}

Sampling::Sampling(const LinkBandwidths& bandwidths, LinkSharing sharing)
    : bandwidths_(bandwidths), sharing_(sharing) {
  start_anew();
}

void Sampling::start_anew() {
  links_.reset();
  if (sharing_ == LinkSharing::simgrid) {
    engine_.emplace(bandwidths_);
  } else {
    engine_.emplace(std::vector<BytesPerSecond>{});
    links_.emplace(*engine_, bandwidths_.size(), [this](int link) { return bandwidths_[link]; });
  }
}

std::optional<double> Sampling::simulated_seconds(const Schedule& schedule, const Pattern& pattern,
                                                  Bytes buffer, double& work_left) {
  const double count = message_count(schedule);
  if (count > work_left) return std::nullopt;
  MessagePattern messages(schedule, pattern.placement);
  const std::int64_t before = links_ ? links_->work() : 0;
  if (links_) {
    keep_narrowest_links(std::array{&messages}, bandwidths_);
    leave_out_unshared_links(std::array{&messages}, bandwidths_);
    links_->limit_work(before + static_cast<std::int64_t>(work_left));
  }
  MessageNetwork network(*engine_, links_ ? &*links_ : nullptr);
  const double start = engine_->now();
  double end = start;
  network.simulate(messages, buffer, [&] { end = engine_->now(); });
  try {
    engine_->run();
  } catch (const MaxMinSharing::TooMuchWork&) {
    start_anew();  // flows are left on the links, for callbacks that are gone
    return std::nullopt;
  }
  work_left -= links_ ? (links_->work() - before) : count;
  return end - start;
}

std::optional<SampledTime> Sampling::time(const Pattern& pattern, Bytes buffer, double max_work) {
  SampledTime sampled;
  bool settled = false;
  double work_left = max_work;
  const int longest = longest_phase(*pattern.schedule);
  double seconds = 0, previous_per_round = 0;
  for (int rounds = longest <= 4 * kFirstRounds ? longest : kFirstRounds;; rounds *= 2) {
    const bool all = 2 * rounds > longest;
    const Schedule schedule = all ? *pattern.schedule : shortened(*pattern.schedule, rounds);
    const auto simulated = simulated_seconds(schedule, pattern, buffer, work_left);
    if (!simulated) return settled ? std::optional(sampled) : std::nullopt;
    const double total = *simulated;
    sampled.messages += message_count(schedule);
    sampled.work = max_work - work_left;
    if (all) return SampledTime{total, 0, sampled.messages, sampled.work};
    const double per_round = (total - seconds) / (rounds / 2);
    if (rounds >= 4 * kFirstRounds) {
      const int left = longest - rounds;
      sampled.seconds = total + left * per_round;
      sampled.error = left * std::abs(per_round - previous_per_round) / sampled.seconds;
      if (sampled.error <= kSettledError) return sampled;
      settled = true;
    }
    seconds = total;
    previous_per_round = per_round;
  }
}

}  // namespace stepcast
