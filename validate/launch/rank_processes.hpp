#pragma once

#include <sys/types.h>

#include <array>
#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "runtime/ranks/shared_control_block.hpp"

namespace stepcast {

/// A rank that died or hangs.
struct RankFailure {
  RankId rank{};
  bool died = false;
  std::string how;  ///< for messages: "died", "hung for 30 s"
};

/// RankState::process of a rank that a signal has stopped on another machine.
constexpr int kStoppedElsewhere = -2;

/// True if a signal has stopped the process of a rank. @param process  as in RankState
bool is_stopped(int process);

/// "rank 1 on h died during step 3 of ...".
std::string failure_text(const SharedControlBlock& control, const RankFailure& failure);

/// Finds failed ranks of one machine, like torchrun's agent: a rank failed if its process died, or if the
/// heartbeat of one of its threads stopped for longer than a timeout.
class HeartbeatMonitor {
 public:
  /// @param heartbeat  timeout [s]
  HeartbeatMonitor(const SharedControlBlock& control, double heartbeat);

  /// Checks all ranks. Returns the failed one; empty if there is none. Call it several times a second.
  std::optional<RankFailure> check();
  bool all_finished() const;

 private:
  using Clock = std::chrono::steady_clock;
  /// The last change of a thread's heartbeat.
  struct LastBeat {
    std::uint64_t beat = 0;
    Clock::time_point when;
  };

  /// Extends all deadlines by the time since the last check if that was longer than usual: the whole machine
  /// may have been suspended.
  void reset_deadlines(Clock::time_point now);
  /// Time since the last heartbeat of the rank's most silent thread [s].
  double silence(RankId rank, Clock::time_point now);

  const SharedControlBlock& control_;
  double heartbeat_;
  Clock::time_point last_check_ = Clock::now();
  IdTable<RankId, std::array<LastBeat, 4>> last_beats_;  ///< per rank, for its four threads
};

/// The network of child processes.
enum class RankNetwork {
  of_the_machine,
  /// A loopback of their own, which no other process reaches; the machine's where the system allows no
  /// namespaces. All children of a process that starts ranks share it.
  loopback_alone
};

/// Child processes that are ranks, or that start ranks (mpirun). The destructor ends all that still run.
class RankProcesses {
 public:
  /// @param commands  each is started in a process group of its own, and ends with this process
  /// @param log       file for their output
  /// @param inputs    what each reads from its standard input; empty: nothing
  RankProcesses(const SharedControlBlock& control, const std::vector<std::vector<std::string>>& commands,
                const std::filesystem::path& log, RankNetwork network,
                const std::vector<std::string>& inputs = {});
  RankProcesses(const RankProcesses&) = delete;
  ~RankProcesses();

  bool all_exited();
  /// A child that has exited with an error, or that a signal has ended.
  struct Failed {
    std::size_t child = 0;
    int signal = 0;  ///< 0: it has exited
  };
  /// The first that has failed so far.
  std::optional<Failed> failed() const;
  /// Waits until all children have exited, at most `time`.
  void wait_for_exit(std::chrono::milliseconds time);

 private:
  struct Child {
    pid_t process = 0;
    int status = 0;
    bool exited = false;
  };

  const SharedControlBlock& control_;
  std::vector<Child> children_;
};

}  // namespace stepcast
