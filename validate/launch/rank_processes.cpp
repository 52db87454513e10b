#include "validate/launch/rank_processes.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>
#include <system_error>
#include <thread>
#include <utility>

#include "strategies/plan/plan.hpp"

namespace stepcast {
namespace {

/// If two checks are further apart, the monitor itself was held up, and the ranks may have been too.
constexpr std::chrono::seconds kMonitorStall(1);

/// Process state as the letter of /proc/PID/stat: T stopped, Z zombie; X if there is no such process.
char state_of(int process) {
  std::ifstream file(fmt::format("/proc/{}/stat", process));
  std::string text;
  if (!std::getline(file, text)) return 'X';
  const auto end = text.rfind(')');  // the program name may contain any character
  return end == std::string::npos || end + 2 >= text.size() ? 'X' : text[end + 2];
}

bool process_died(const RankState& rank) {
  const int process = rank.process.load();
  if (process == kDiedElsewhere) return rank.finished.load() == 0;
  if (process <= 0) return false;
  const char state = state_of(process);
  return (state == 'Z' || state == 'X') && rank.finished.load() == 0;
}

}  // namespace

bool is_stopped(int process) {
  return process == kStoppedElsewhere || (process > 0 && state_of(process) == 'T');
}

std::string failure_text(const SharedControlBlock& control, const RankFailure& failure) {
  const RankState& state = control.rank(failure.rank);
  const std::string host = state.host[0] == 0 ? "" : fmt::format(" on {}", state.host);
  const std::string status = state.status[0] == 0 ? "startup" : state.status;
  return fmt::format("rank {}{} {} during {}", failure.rank.value, host, failure.how, status);
}

HeartbeatMonitor::HeartbeatMonitor(const SharedControlBlock& control, double heartbeat)
    : control_(control), heartbeat_(heartbeat), last_beats_(control.ranks()) {
  for (auto& threads : last_beats_) threads.fill({0, Clock::now()});
}

std::optional<RankFailure> HeartbeatMonitor::check() {
  const auto now = Clock::now();  // one time for all ranks, because a check may be held up half-way
  reset_deadlines(now);
  for (const RankId rank : first_ranks(control_.ranks())) {
    if (process_died(control_.rank(rank))) return RankFailure{rank, true, "died"};
  }
  IdTable<RankId, double> silent;
  for (const RankId rank : first_ranks(control_.ranks())) silent.push_back(silence(rank, now));
  const auto longest = std::max_element(silent.begin(), silent.end());
  if (*longest <= heartbeat_) return {};
  auto failure = RankId(longest - silent.begin());
  // While MPI starts, ranks that wait for a stopped rank are silent too. The stopped rank is the one
  // that failed.
  for (const RankId rank : first_ranks(control_.ranks())) {
    const bool long_silent = silent[rank] > heartbeat_ / 2;
    if (long_silent && is_stopped(control_.rank(rank).process.load())) failure = rank;
  }
  const double seconds = silent[failure];
  return RankFailure{failure, false, fmt::format("hung for {:.0f} s", seconds)};
}

void HeartbeatMonitor::reset_deadlines(Clock::time_point now) {
  const auto since = std::exchange(last_check_, now);
  if (now - since < kMonitorStall) return;
  for (auto& threads : last_beats_) {
    for (LastBeat& seen : threads) seen.when += now - since;
  }
}

double HeartbeatMonitor::silence(RankId rank, Clock::time_point now) {
  const RankState& state = control_.rank(rank);
  if (state.finished.load() != 0) return 0;
  const std::uint64_t heartbeats[] = {state.heartbeat.load(), state.collectives_heartbeat.load(),
                                      state.messages_heartbeat.load(), state.input_heartbeat.load()};
  double longest = 0;
  for (std::size_t thread = 0; thread < std::size(heartbeats); ++thread) {
    LastBeat& seen = last_beats_[rank][thread];
    const bool there = thread == 0 || heartbeats[thread] != 0;
    if (heartbeats[thread] != seen.beat || !there) seen = {heartbeats[thread], now};
    longest = std::max(longest, std::chrono::duration<double>(now - seen.when).count());
  }
  return longest;
}

bool HeartbeatMonitor::all_finished() const {
  for (const RankId rank : first_ranks(control_.ranks())) {
    if (control_.rank(rank).finished.load() == 0) return false;
  }
  return true;
}

namespace {

using namespace std::chrono_literals;

void write_to(const char* file, const char* text) {
  const int out = open(file, O_WRONLY | O_CLOEXEC);
  if (out < 0) return;
  static_cast<void>(!write(out, text, strlen(text)));
  close(out);
}

/// Gives this process a network with nothing but its own loopback. Without privileges this takes a user
/// namespace, in which the process keeps its user and group. Where the system allows neither, nothing
/// changes. It is called between fork and exec; `user_map` and `group_map` are the lines "ID ID 1".
void leave_networks(const char* user_map, const char* group_map) {
  if (unshare(CLONE_NEWNET) != 0) {
    if (unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0) return;
    write_to("/proc/self/setgroups", "deny");
    write_to("/proc/self/uid_map", user_map);
    write_to("/proc/self/gid_map", group_map);
  }
  const int socket = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  ifreq request{};
  strcpy(request.ifr_name, "lo");
  request.ifr_flags = IFF_UP | IFF_RUNNING;
  ioctl(socket, SIOCSIFFLAGS, &request);
  close(socket);
}

/// A file without a name that holds `text`, to be read from its beginning. @throws std::system_error
int file_with(const std::string& text) {
  const int file = memfd_create("input", MFD_CLOEXEC);
  for (std::string_view rest = text; file < 0 || !rest.empty();) {
    const ssize_t written = file < 0 ? -1 : write(file, rest.data(), rest.size());
    if (written < 0) throw std::system_error(errno, std::generic_category(), "the standard input of a rank");
    rest.remove_prefix(written);
  }
  lseek(file, 0, SEEK_SET);
  return file;
}

/// Starts a child in a process group of its own. The child is terminated when this process ends.
/// @param text  its standard input
pid_t spawn(const std::vector<std::string>& command, const std::string& text,
            const std::filesystem::path& log, RankNetwork network) {
  const std::string user_map = fmt::format("{0} {0} 1", getuid()),
                    group_map = fmt::format("{0} {0} 1", getgid());
  std::vector<char*> words;
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  const int output = open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (output < 0) throw std::system_error(errno, std::generic_category(), log.string());
  const int input = file_with(text);
  const pid_t parent = getpid(), child = fork();
  if (child < 0) throw std::system_error(errno, std::generic_category(), "fork");
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) _exit(127);  // it was killed before
    setpgid(0, 0);
    if (network == RankNetwork::loopback_alone) leave_networks(user_map.c_str(), group_map.c_str());
    dup2(input, 0);
    dup2(output, 1);
    dup2(output, 2);
    // Open MPI refuses to run as root without these variables.
    setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
    setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
    setenv("OMP_NUM_THREADS", "1", 1);
    execv(words.front(), words.data());
    _exit(127);
  }
  setpgid(child, child);  // also here, because the child may be killed before it calls setpgid
  close(output);
  close(input);
  return child;
}

}  // namespace

RankProcesses::RankProcesses(const SharedControlBlock& control,
                             const std::vector<std::vector<std::string>>& commands,
                             const std::filesystem::path& log, RankNetwork network,
                             const std::vector<std::string>& inputs)
    : control_(control) {
  std::filesystem::remove(log);
  for (std::size_t i = 0; i < commands.size(); ++i)
    children_.push_back({spawn(commands[i], inputs.empty() ? "" : inputs[i], log, network)});
}

RankProcesses::~RankProcesses() {
  if (all_exited() && !failed()) return;  // ranks may survive an mpirun that was killed
  for (const RankId rank : first_ranks(control_.ranks())) {
    const int process = control_.rank(rank).process.load();
    const bool collected = std::ranges::any_of(  // the id may belong to another process by now
        children_, [&](const Child& child) { return child.exited && child.process == process; });
    if (process > 0 && !collected && control_.rank(rank).finished.load() == 0) kill(process, SIGKILL);
  }
  for (const Child& child : children_) {
    if (!child.exited) kill(child.process, SIGTERM);
  }
  wait_for_exit(3s);
  for (const Child& child : children_) {
    if (child.exited) continue;
    kill(-child.process, SIGKILL);
    waitpid(child.process, nullptr, 0);
  }
}

bool RankProcesses::all_exited() {
  bool all = true;
  for (Child& child : children_) {
    child.exited = child.exited || waitpid(child.process, &child.status, WNOHANG) == child.process;
    all = all && child.exited;
  }
  return all;
}

std::optional<RankProcesses::Failed> RankProcesses::failed() const {
  for (std::size_t i = 0; i < children_.size(); ++i) {
    const int status = children_[i].status;
    if (status != 0) return Failed{i, WIFSIGNALED(status) ? WTERMSIG(status) : 0};
  }
  return std::nullopt;
}

void RankProcesses::wait_for_exit(std::chrono::milliseconds time) {
  const auto until = std::chrono::steady_clock::now() + time;
  while (!all_exited() && std::chrono::steady_clock::now() < until) std::this_thread::sleep_for(20ms);
}

}  // namespace stepcast
