#pragma once

#include <filesystem>

namespace stepcast {

/// Control groups that give each rank of one machine a share of a core: the system lets the threads of a rank
/// run for 1 ms in every 1 / share ms, whatever the other ranks do. Either version of control groups will do
/// (`cpu.max`, `cpu.cfs_quota_us`). Usually only root can create them.
class CpuQuotas {
 public:
  /// Makes a group for each rank. @param share  cores of a rank, above 0 and up to 1
  /// @throws InputError that names the folder and the reason if the system does not allow it
  CpuQuotas(int ranks, double share);
  CpuQuotas(const CpuQuotas&) = delete;
  /// Removes the groups. Their processes must have ended; those that have not stay in them.
  ~CpuQuotas();

  const std::filesystem::path& folder() const { return folder_; }

 private:
  std::filesystem::path folder_;
};

/// Moves this process with all its threads into the group of a rank.
/// @throws std::runtime_error if the system does not allow it
void join_cpu_quota(const std::filesystem::path& folder, int rank);

}  // namespace stepcast
