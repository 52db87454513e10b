#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "validate/control.hpp"

namespace stepcast {

/// Starts ranks, or what starts them (mpirun), and in the end ends those that are left.
class RankProcesses {
 public:
  /// @param commands  each in a process group of its own, which goes with this process
  /// @param log       for what they say
  RankProcesses(const Control& control, const std::vector<std::vector<std::string>>& commands,
                const std::filesystem::path& log);
  RankProcesses(const RankProcesses&) = delete;
  ~RankProcesses();

  bool ended();
  /// So far: none ended otherwise.
  bool well() const;
  /// Waits for the end, so long at most.
  void give_time(std::chrono::milliseconds time);

 private:
  struct Child {
    pid_t process = 0;
    int status = 0;
    bool ended = false;
  };

  const Control& control_;
  std::vector<Child> children_;
};

}  // namespace stepcast
