#include "validate/launch/cpu_quota.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>
#include <system_error>
#include <thread>

#include "core/error.hpp"

namespace stepcast {
namespace {

constexpr double kQuota = 1000;  // the shortest that Linux accepts [us]

/// Where control groups are mounted that can limit CPU time.
struct Hierarchy {
  std::filesystem::path root;
  bool unified = false;  ///< version 2
};

bool has_word(const std::string& text, const std::string& word, char separator) {
  std::istringstream words(text);
  for (std::string one; std::getline(words, one, separator);) {
    if (one == word) return true;
  }
  return false;
}

/// The hierarchy with the CPU controller; its root is empty if there is none.
Hierarchy cpu_hierarchy() {
  std::ifstream mounts("/proc/self/mounts");
  std::string device, folder, type, options, rest;
  while (mounts >> device >> folder >> type >> options && std::getline(mounts, rest)) {
    if (type == "cgroup" && has_word(options, "cpu", ',')) return {folder, false};
    if (type != "cgroup2") continue;
    std::string controllers;
    std::getline(std::ifstream(std::filesystem::path(folder) / "cgroup.controllers"), controllers);
    if (has_word(controllers, "cpu", ' ')) return {folder, true};
  }
  return {};
}

/// Writes one line into a file of a control group. @return why it failed; empty if it did not
std::string write_line(const std::filesystem::path& file, const std::string& line) {
  const int descriptor = open(file.c_str(), O_WRONLY | O_CLOEXEC);
  if (descriptor < 0) return fmt::format("{}: {}", file.string(), std::strerror(errno));
  const bool written = write(descriptor, line.data(), line.size()) == std::ssize(line);
  const int error = errno;
  close(descriptor);
  return written ? "" : fmt::format("{}: {}", file.string(), std::strerror(error));
}

std::filesystem::path group_of(const std::filesystem::path& folder, int rank) {
  return folder / fmt::format("rank-{}", rank);
}

/// Makes the group of a rank. @return why it failed; empty if it did not
std::string make_group(const std::filesystem::path& group, bool unified, double share) {
  std::error_code error;
  std::filesystem::create_directory(group, error);
  if (error) return fmt::format("{}: {}", group.string(), error.message());
  const long period = std::lround(kQuota / share);
  if (unified) return write_line(group / "cpu.max", fmt::format("{:.0f} {}", kQuota, period));
  const std::string why = write_line(group / "cpu.cfs_period_us", std::to_string(period));
  return why.empty() ? write_line(group / "cpu.cfs_quota_us", fmt::format("{:.0f}", kQuota)) : why;
}

/// Removes the groups; ended processes leave them a moment later.
void remove_groups(const std::filesystem::path& folder) {
  std::error_code ignored;
  for (int attempt = 0; attempt < 50; ++attempt) {
    for (int rank = 0; std::filesystem::exists(group_of(folder, rank), ignored); ++rank)
      rmdir(group_of(folder, rank).c_str());
    if (rmdir(folder.c_str()) == 0 || errno == ENOENT) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

}  // namespace

CpuQuotas::CpuQuotas(int ranks, double share) {
  const Hierarchy hierarchy = cpu_hierarchy();
  if (hierarchy.root.empty())
    throw InputError(
        "--cpu-quota: expected control groups of Linux with the CPU controller, found none mounted");
  folder_ = hierarchy.root / fmt::format("stepcast-{}", getpid());
  std::error_code error;
  std::filesystem::create_directory(folder_, error);
  std::string why = error ? fmt::format("{}: {}", folder_.string(), error.message()) : std::string();
  if (why.empty() && hierarchy.unified) why = write_line(folder_ / "cgroup.subtree_control", "+cpu");
  for (int rank = 0; rank < ranks && why.empty(); ++rank)
    why = make_group(group_of(folder_, rank), hierarchy.unified, share);
  if (why.empty()) return;
  remove_groups(folder_);
  throw InputError(fmt::format("--cpu-quota: expected the right to make control groups, got {}", why));
}

CpuQuotas::~CpuQuotas() {
  remove_groups(folder_);
}

void join_cpu_quota(const std::filesystem::path& folder, int rank) {
  const std::string why = write_line(group_of(folder, rank) / "cgroup.procs", std::to_string(getpid()));
  if (!why.empty()) throw std::runtime_error("the control group of a rank: " + why);
}

}  // namespace stepcast
