#include "validate/launch/rank_processes.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <system_error>
#include <thread>

namespace stepcast {
namespace {

using namespace std::chrono_literals;

/// Starts a child in a process group of its own. The child is terminated when this process ends.
pid_t spawn(const std::vector<std::string>& command, const std::filesystem::path& log) {
  std::vector<char*> words;
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  const int output = open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  const int input = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (output < 0 || input < 0) throw std::system_error(errno, std::generic_category(), log.string());
  const pid_t child = fork();
  if (child < 0) throw std::system_error(errno, std::generic_category(), "fork");
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    setpgid(0, 0);
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
                             const std::filesystem::path& log)
    : control_(control) {
  std::filesystem::remove(log);
  for (const auto& command : commands) children_.push_back({spawn(command, log)});
}

RankProcesses::~RankProcesses() {
  if (all_exited()) return;
  for (int rank = 0; rank < control_.ranks(); ++rank) {
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

bool RankProcesses::none_failed() const {
  return std::ranges::all_of(children_, [](const Child& child) { return child.status == 0; });
}

void RankProcesses::wait_for_exit(std::chrono::milliseconds time) {
  const auto until = std::chrono::steady_clock::now() + time;
  while (!all_exited() && std::chrono::steady_clock::now() < until) std::this_thread::sleep_for(20ms);
}

}  // namespace stepcast
