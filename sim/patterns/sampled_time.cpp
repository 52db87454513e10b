#include <algorithm>
#include <array>
#include <memory>

#include "sim/patterns/message_simulation.hpp"
#include "sim/patterns/pattern.hpp"

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

/// Simulated duration of all messages of a schedule [s]; nothing if the simulation needs more than
/// `work_left`.
std::optional<double> simulated_seconds(const Schedule& schedule, const Pattern& pattern, Bytes buffer,
                                        const LinkBandwidths& bandwidths, double& work_left) {
  const Placement& placement = pattern.placement;
  if (message_count(schedule) > work_left) return std::nullopt;
  Engine engine({});
  MaxMinSharing links(engine, bandwidths.size(), [&](int link) { return bandwidths[link]; });
  links.limit_work(static_cast<std::int64_t>(work_left));
  MessagePattern messages(schedule, placement);
  keep_narrowest_links(std::array{&messages}, bandwidths);
  leave_out_unshared_links(std::array{&messages}, bandwidths);
  MessageNetwork network(engine, &links);
  double end = 0;
  network.simulate(messages, buffer, [&] { end = engine.now(); });
  try {
    engine.run();
  } catch (const MaxMinSharing::TooMuchWork&) {
    return std::nullopt;
  }
  work_left -= static_cast<double>(links.work());
  return end;
}

}  // namespace

double sampled_messages(const Schedule& schedule) {
  const int longest = longest_phase(schedule), rounds = 7 * kFirstRounds;  // 8 + 16 + 32
  return message_count(longest <= rounds ? schedule : shortened(schedule, rounds));
}

std::optional<SampledTime> sampled_time(const Pattern& pattern, Bytes buffer,
                                        const LinkBandwidths& bandwidths, double max_work) {
  SampledTime sampled;
  bool settled = false;
  double work_left = max_work;
  const int longest = longest_phase(*pattern.schedule);
  double seconds = 0, previous_per_round = 0;
  for (int rounds = longest <= 4 * kFirstRounds ? longest : kFirstRounds;; rounds *= 2) {
    const bool all = 2 * rounds > longest;
    const Schedule schedule = all ? *pattern.schedule : shortened(*pattern.schedule, rounds);
    const auto simulated = simulated_seconds(schedule, pattern, buffer, bandwidths, work_left);
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
