#include "validate/watch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <utility>

namespace stepcast {
namespace {

/// Who looks as seldom as that was held up itself, and ranks may have been too.
constexpr std::chrono::seconds kHeldUp(1);

/// The state of a process as a letter: T stopped, Z dead but not collected; X where there is none.
char state_of(int process) {
  std::ifstream file(fmt::format("/proc/{}/stat", process));
  std::string text;
  if (!std::getline(file, text)) return 'X';
  const auto end = text.rfind(')');  // the name may hold anything
  return end == std::string::npos || end + 2 >= text.size() ? 'X' : text[end + 2];
}

bool died(const RankState& rank) {
  const int process = rank.process.load();
  if (process <= 0) return false;
  const char state = state_of(process);
  return (state == 'Z' || state == 'X') && rank.finished.load() == 0;
}

}  // namespace

std::string named(const Control& control, const LostRank& lost) {
  const RankState& state = control.rank(lost.rank);
  const std::string host = state.host[0] == 0 ? "" : fmt::format(" on {}", state.host);
  const std::string doing = state.doing[0] == 0 ? "its start" : state.doing;
  return fmt::format("rank {}{} {} during {}", lost.rank, host, lost.how, doing);
}

Watch::Watch(const Control& control, double heartbeat)
    : control_(control), heartbeat_(heartbeat), seen_(static_cast<std::size_t>(control.ranks())) {
  for (auto& threads : seen_) threads.fill({0, Clock::now()});
}

std::optional<LostRank> Watch::look() {
  const auto now = Clock::now();  // one for all: a look may be held up in its midst
  forgive(now);
  for (int rank = 0; rank < control_.ranks(); ++rank) {
    if (died(control_.rank(rank))) return LostRank{rank, true, "died"};
  }
  std::vector<double> silent;
  for (int rank = 0; rank < control_.ranks(); ++rank) silent.push_back(silence(rank, now));
  const auto longest = std::max_element(silent.begin(), silent.end());
  if (*longest <= heartbeat_) return {};
  auto lost = static_cast<int>(longest - silent.begin());
  // While MPI starts, those who wait for a rank are as silent as it is: one that is stopped is to blame.
  for (int rank = 0; rank < control_.ranks(); ++rank) {
    const bool long_silent = silent[static_cast<std::size_t>(rank)] > heartbeat_ / 2;
    if (long_silent && state_of(control_.rank(rank).process.load()) == 'T') lost = rank;
  }
  const double seconds = silent[static_cast<std::size_t>(lost)];
  return LostRank{lost, false, fmt::format("hung for {:.0f} s", seconds)};
}

void Watch::forgive(Clock::time_point now) {
  const auto since = std::exchange(looked_, now);
  if (now - since < kHeldUp) return;
  for (auto& threads : seen_) {
    for (Seen& seen : threads) seen.when += now - since;
  }
}

double Watch::silence(int rank, Clock::time_point now) {
  const RankState& state = control_.rank(rank);
  if (state.finished.load() != 0) return 0;
  const std::uint64_t beats[] = {state.beat.load(), state.collectives_beat.load(),
                                 state.messages_beat.load()};
  double longest = 0;
  for (std::size_t thread = 0; thread < std::size(beats); ++thread) {
    Seen& seen = seen_[static_cast<std::size_t>(rank)][thread];
    const bool there = thread == 0 || beats[thread] != 0;
    if (beats[thread] != seen.beat || !there) seen = {beats[thread], now};
    longest = std::max(longest, std::chrono::duration<double>(now - seen.when).count());
  }
  return longest;
}

bool Watch::all_finished() const {
  for (int rank = 0; rank < control_.ranks(); ++rank) {
    if (control_.rank(rank).finished.load() == 0) return false;
  }
  return true;
}

}  // namespace stepcast
