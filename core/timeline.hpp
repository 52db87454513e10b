#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/error.hpp"

namespace stepcast {

/// An activity of a rank from one date to another. Dates are seconds since the start of the run; issued <=
/// start <= end.
struct Span {
  enum class Kind : char {
    compute,     ///< the device runs a layer, or arithmetic of the strategy
    load,        ///< input comes from storage
    collective,  ///< a collective moves data
    send,        ///< a message is under way, at its sender
    receive,     ///< the same message, at its receiver
    pause,       ///< the host works and the device is idle
    wait,        ///< the program waits for communication or input
    step,        ///< one step of the program
  };

  Kind kind{};
  int rank = 0;
  int name = 0;           ///< index into Timeline::names, such as "conv1 forward"
  double issued = 0;      ///< when the program started the operation [s]
  double start = 0;       ///< [s]
  double end = 0;         ///< [s]
  int stream = 0;         ///< collective: its stream, counted over all communicators
  int collective = -1;    ///< collective: index into Timeline::collectives
  std::int64_t item = 0;  ///< message: its number, the same at both ends; step: its number; else 0
  int peer = -1;          ///< message: the rank at the other end; -1: several
  double bytes = 0;       ///< message or load
};

/// A collective of the plan, as timelines show it.
struct TimelineCollective {
  std::string kind;       ///< "all_reduce"
  std::string algorithm;  ///< "ring"; empty: none
  double bytes = 0;       ///< buffer of one rank
  int communicator = 0;   ///< index into Timeline::communicators
};

struct TimelineCommunicator {
  std::vector<int> ranks;  ///< of all groups, group after group
  int group_size = 1;
};

struct TimelineRank {
  int rank = 0;
  std::string name;  ///< "worker 3"
};

/// Activities of a run, simulated or real, for trace viewers and analyses.
struct Timeline {
  std::vector<TimelineRank> ranks;  ///< the recorded ranks, ascending
  std::vector<std::string> names;
  std::vector<TimelineCommunicator> communicators;
  std::vector<TimelineCollective> collectives;
  std::vector<Span> spans;  ///< in any order
  int run_ranks = 1;        ///< number of ranks of the run

  /// The index of a name in `names`, which gets it if it is new.
  int name(const std::string& text) {
    const auto [known, is_new] = numbers_.try_emplace(text, names.size());
    if (is_new) names.push_back(text);
    return known->second;
  }

  /// Adds a span, unless it takes no time. @throws LimitError beyond 20 million spans
  void add(const Span& span) {
    constexpr std::size_t kMostSpans = 20'000'000;  // about 1.6 GB
    if (span.end <= span.start) return;
    if (spans.size() == kMostSpans)
      throw LimitError("the timeline has more than 20 million spans; choose fewer ranks or steps");
    spans.push_back(span);
  }

 private:
  std::unordered_map<std::string, int> numbers_;  ///< by name
};

}  // namespace stepcast
