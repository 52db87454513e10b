#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "runtime/ranks/shared_control_block.hpp"

namespace stepcast {

/// Child processes that are ranks, or that start ranks (mpirun). The destructor ends all that still run.
class RankProcesses {
 public:
  /// @param commands  each is started in a process group of its own, and ends with this process
  /// @param log       file for their output
  RankProcesses(const SharedControlBlock& control, const std::vector<std::vector<std::string>>& commands,
                const std::filesystem::path& log);
  RankProcesses(const RankProcesses&) = delete;
  ~RankProcesses();

  bool all_exited();
  /// True if no child has exited with an error so far.
  bool none_failed() const;
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
