#include "commands/pool.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <exception>
#include <system_error>

#include "commands/signals.hpp"
#include "core/error.hpp"

namespace stepcast {
namespace {

struct Child {
  pid_t pid = 0;
  int output = -1;
  std::size_t task = 0;
  std::string text;
};

/// A signal that comes just before the wait for children begins does not end it: it is seen this much later.
constexpr int kLookAgain = 200;  // ms

/// What a child sends first: how it ended.
constexpr char kDone = '0', kFault = '1', kInput = '2', kLimit = '3';

std::string outcome_of(const Task& task) {
  try {
    return kDone + task();
  } catch (const InputError& error) {
    return kInput + std::string(error.what());
  } catch (const LimitError& error) {
    return kLimit + std::string(error.what());
  } catch (const std::exception& error) {
    return kFault + std::string(error.what());
  }
}

[[noreturn]] void run_child(const Task& task, int output, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // a child of a child goes too when the one between is stopped
  if (getppid() != parent) _exit(1);
  signal(SIGINT, SIG_DFL);
  signal(SIGTERM, SIG_DFL);
  const std::string text = outcome_of(task);
  for (std::size_t at = 0; at < text.size();) {
    const ssize_t written = write(output, text.data() + at, text.size() - at);
    if (written < 0 && errno != EINTR) _exit(1);
    if (written > 0) at += static_cast<std::size_t>(written);
  }
  _exit(0);  // no destructors: SimGrid's own exit handlers belong to the parent
}

class Pool {
 public:
  Pool(const std::vector<Task>& tasks, std::size_t processes, const std::function<void()>& meanwhile)
      : tasks_(tasks), processes_(processes), meanwhile_(meanwhile) {}
  Pool(const Pool&) = delete;
  ~Pool() {
    for (const Child& child : children_) {
      kill(child.pid, SIGKILL);
      close(child.output);
      waitpid(child.pid, nullptr, 0);
    }
  }

  void run(const std::function<void(std::size_t, const std::string&)>& done) {
    while (next_ < tasks_.size() || !children_.empty()) {
      while (next_ < tasks_.size() && children_.size() < processes_) start();
      wait();
      for (std::size_t i = children_.size(); i-- > 0;) {
        if (children_[i].output < 0) finish(i, done);
      }
    }
  }

 private:
  void start() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) throw std::system_error(errno, std::generic_category(), "pipe");
    std::fflush(nullptr);  // else a child flushes a copy of what is still to be written here
    const pid_t self = getpid();
    const pid_t pid = fork();
    if (pid < 0) throw std::system_error(errno, std::generic_category(), "fork");
    if (pid == 0) {
      close(ends[0]);
      run_child(tasks_[next_], ends[1], self);
    }
    close(ends[1]);
    children_.push_back({pid, ends[0], next_++, {}});
  }

  void wait() {
    std::vector<pollfd> waits;
    for (const Child& child : children_) waits.push_back({child.output, POLLIN, 0});
    const int ready = poll(waits.data(), waits.size(), kLookAgain);
    if (meanwhile_) meanwhile_();
    SignalGuard::stop_if_interrupted();
    if (ready < 0 && errno != EINTR) throw std::system_error(errno, std::generic_category(), "poll");
    for (std::size_t i = 0; ready > 0 && i < waits.size(); ++i) {
      if (waits[i].revents != 0) receive(children_[i]);
    }
  }

  static void receive(Child& child) {
    char buffer[65536];
    const ssize_t got = read(child.output, buffer, sizeof buffer);
    if (got > 0) {
      child.text.append(buffer, static_cast<std::size_t>(got));
    } else if (got == 0) {
      close(child.output);
      child.output = -1;
    }
  }

  void finish(std::size_t index, const std::function<void(std::size_t, const std::string&)>& done) {
    const Child child = std::move(children_[index]);
    children_.erase(children_.begin() + static_cast<std::ptrdiff_t>(index));
    int status = 0;
    waitpid(child.pid, &status, 0);
    const char how = child.text.empty() ? '?' : child.text.front();
    const std::string text = child.text.empty() ? "" : child.text.substr(1);
    if (how == kDone && WIFEXITED(status)) return done(child.task, text);
    if (how == kInput) throw InputError(text);
    if (how == kLimit) throw LimitError(text);
    throw std::runtime_error(how == kFault ? text : "a simulation process died");
  }

  const std::vector<Task>& tasks_;
  std::size_t processes_, next_ = 0;
  const std::function<void()>& meanwhile_;
  std::vector<Child> children_;
};

}  // namespace

void run_tasks(const std::vector<Task>& tasks, int processes,
               const std::function<void(std::size_t task, const std::string& text)>& done,
               const std::function<void()>& meanwhile) {
  const SignalGuard guard;
  Pool(tasks, static_cast<std::size_t>(processes), meanwhile).run(done);
}

}  // namespace stepcast
