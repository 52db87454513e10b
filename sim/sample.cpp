#include "sim/sample.hpp"

#include <algorithm>

#include "sim/play.hpp"

namespace stepcast {
namespace {

constexpr int kFirstRounds = 8;
constexpr double kEnough = 0.001;

int longest_phase(const Schedule& schedule) {
  int longest = 1;
  for (const Phase& phase : schedule.phases) longest = std::max(longest, phase.active);
  return longest;
}

/// The schedule with `rounds` of the rounds of its longest phases; messages stay as large as they are.
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

/// Seconds of all messages; none where that is more work than is left.
std::optional<double> played_seconds(const Schedule& schedule, const Pattern& pattern, Bytes buffer,
                                     const LinkBandwidths& bandwidths, double& work_left) {
  const Placement& placement = pattern.placement;
  if (message_count(schedule) > work_left) return std::nullopt;
  Engine engine({});
  MaxMinLinks links(engine, bandwidths.size(), [&](int link) { return bandwidths[link]; });
  links.limit_work(static_cast<std::int64_t>(work_left));
  Paths paths(*placement.platform, *placement.topology);
  double end = 0;
  play_messages({engine, paths, &links}, {schedule, placement, buffer}, [&] { end = engine.now(); });
  try {
    engine.run();
  } catch (const MaxMinLinks::TooMuchWork&) {
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

std::optional<Sample> sample(const Pattern& pattern, Bytes buffer, const LinkBandwidths& bandwidths,
                             double most) {
  Sample sampled;
  bool settled = false;
  double work_left = most;
  const int longest = longest_phase(*pattern.schedule);
  double seconds = 0, pace = 0;
  for (int rounds = longest <= 4 * kFirstRounds ? longest : kFirstRounds;; rounds *= 2) {
    const bool all = 2 * rounds > longest;
    const Schedule schedule = all ? *pattern.schedule : shortened(*pattern.schedule, rounds);
    const auto played = played_seconds(schedule, pattern, buffer, bandwidths, work_left);
    if (!played) return settled ? std::optional(sampled) : std::nullopt;
    const double here = *played;
    sampled.messages += message_count(schedule);
    sampled.work = most - work_left;
    if (all) return Sample{here, 0, sampled.messages, sampled.work};
    const double steady = (here - seconds) / (rounds / 2);
    if (rounds >= 4 * kFirstRounds) {
      const int left = longest - rounds;
      sampled.seconds = here + left * steady;
      sampled.error = left * std::abs(steady - pace) / sampled.seconds;
      if (sampled.error <= kEnough) return sampled;
      settled = true;
    }
    seconds = here;
    pace = steady;
  }
}

}  // namespace stepcast
