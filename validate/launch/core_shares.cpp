#include "validate/launch/core_shares.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <random>
#include <sstream>
#include <stop_token>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "core/error.hpp"
#include "kernels/timing/step_timer.hpp"
#include "runtime/transport/progress_thread.hpp"

namespace stepcast {
namespace {

/// A bit more than the time slice of progress threads, which so begin as soon as they are woken [s].
constexpr double kShortestTurn = 1.1e-4;

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

/// @return why it failed; empty if it did not
std::string make_group(const std::filesystem::path& group) {
  std::error_code error;
  std::filesystem::create_directory(group, error);
  return error ? fmt::format("{}: {}", group.string(), error.message()) : "";
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

/// Wakes the calling thread after each turn.
void wake_after_turns(const std::stop_token& stop, int core) {
  std::minstd_rand random(core + 1);
  std::uniform_real_distribution<> turn(kShortestTurn, 2 * CoreShares::kTurn - kShortestTurn);
  while (!stop.stop_requested()) sleep_until(now().wall + turn(random));
}

/// Binds a thread to a core, at the lowest real-time priority. @return why it failed; empty if it did not
std::string place_timer(pthread_t thread, int core) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(core, &one);
  int error = pthread_setaffinity_np(thread, sizeof one, &one);
  const sched_param priority{sched_get_priority_min(SCHED_FIFO)};
  if (error == 0) error = pthread_setschedparam(thread, SCHED_FIFO, &priority);
  return error == 0 ? "" : fmt::format("real-time priority: {}", std::strerror(error));
}

/// Starts a timer on each core that this process may use. @return why it failed; empty if it did not
std::string start_timers(std::vector<std::jthread>& timers) {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  sched_getaffinity(0, sizeof allowed, &allowed);
  std::string why;
  for (int core = 0; core < CPU_SETSIZE && why.empty(); ++core) {
    if (!CPU_ISSET(core, &allowed)) continue;
    why = place_timer(timers.emplace_back(wake_after_turns, core).native_handle(), core);
  }
  return why;
}

}  // namespace

CoreShares::CoreShares(int ranks) {
  const Hierarchy hierarchy = cpu_hierarchy();
  if (hierarchy.root.empty())
    throw InputError(
        "--share-cores: expected control groups of Linux with the CPU controller, found none mounted");
  folder_ = hierarchy.root / fmt::format("stepcast-{}", getpid());
  std::string why = make_group(folder_);
  if (why.empty() && hierarchy.unified) why = write_line(folder_ / "cgroup.subtree_control", "+cpu");
  for (int rank = 0; rank < ranks && why.empty(); ++rank) why = make_group(group_of(folder_, rank));
  if (why.empty()) why = start_timers(timers_);
  if (why.empty()) return;
  remove_groups(folder_);
  throw InputError(fmt::format("--share-cores: expected the right to share cores by turns, got {}", why));
}

CoreShares::~CoreShares() {
  remove_groups(folder_);
}

void join_core_share(const std::filesystem::path& folder, int rank) {
  const std::string why = write_line(group_of(folder, rank) / "cgroup.procs", std::to_string(getpid()));
  if (!why.empty()) throw std::runtime_error("the control group of a rank: " + why);
}

std::jthread take_turns(std::function<void()> fill) {
  set_time_slice(kShortestTurn);
  return std::jthread([fill = std::move(fill)](const std::stop_token& stop) {
    const sched_param none{};
    if (sched_setscheduler(0, SCHED_IDLE, &none) != 0) return;
    while (!stop.stop_requested()) fill();
  });
}

}  // namespace stepcast
