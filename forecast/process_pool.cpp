#include "forecast/process_pool.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <exception>
#include <iostream>
#include <system_error>
#include <utility>

#include "core/error.hpp"

namespace stepcast {
namespace {

// A signal handler has no argument for user data, so its result must be a global variable.
volatile sig_atomic_t seen = 0;
int guards = 0;  // number of nested guards

void on_signal(int) {
  seen = 1;
}

}  // namespace

SignalGuard::SignalGuard() {
  struct sigaction action {};
  action.sa_handler = on_signal;  // without SA_RESTART, so that poll returns
  if (guards++ == 0) seen = 0;
  sigaction(SIGINT, &action, &old_int_);
  sigaction(SIGTERM, &action, &old_term_);
}

SignalGuard::~SignalGuard() {
  --guards;
  sigaction(SIGINT, &old_int_, nullptr);
  sigaction(SIGTERM, &old_term_, nullptr);
}

bool SignalGuard::interrupted() {
  return seen != 0;
}

void SignalGuard::stop_if_interrupted() {
  if (interrupted()) throw Interrupted("interrupted");
}

TaskProgress::TaskProgress(std::size_t tasks, std::string what)
    : tasks_(tasks), what_(std::move(what)), progress_(std::cerr, progress_style()) {}

void TaskProgress::one_done() {
  done_ = std::min(done_ + 1, tasks_);
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - started_;
  progress_.update(progress_text(done_, tasks_, {elapsed.count()}, what_), {elapsed.count()});
}

namespace {

struct Child {
  pid_t pid = 0;
  int output = -1;
  std::size_t task = 0;
  std::string text;
};

/// Timeout of poll [ms]. A signal that arrives just before poll starts does not interrupt it; the signal is
/// then handled after this time.
constexpr int kPollTimeout = 200;

/// The first character that a child sends: its outcome.
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
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // a grandchild is killed too when its parent is killed
  if (getppid() != parent) _exit(1);
  signal(SIGINT, SIG_DFL);
  signal(SIGTERM, SIG_DFL);
  const std::string text = outcome_of(task);
  for (std::size_t at = 0; at < text.size();) {
    const ssize_t written = write(output, text.data() + at, text.size() - at);
    if (written < 0 && errno != EINTR) _exit(1);
    if (written > 0) at += static_cast<std::size_t>(written);
  }
  _exit(0);  // without destructors and exit handlers: SimGrid registers handlers that only the parent may run
}

std::string died_text(int status) {
  const std::string how = WIFSIGNALED(status) ? " was killed by signal " + std::to_string(WTERMSIG(status))
                                              : " ended without a result";
  return "a simulation process" + how +
         (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL
              ? "; the machine may be out of memory: use fewer processes (-j)"
              : "");
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
    std::fflush(nullptr);  // otherwise the child would write a copy of the parent's buffered output
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
    const int ready = poll(waits.data(), waits.size(), kPollTimeout);
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
    const char outcome = child.text.empty() ? '?' : child.text.front();
    const std::string text = child.text.empty() ? "" : child.text.substr(1);
    if (outcome == kDone && WIFEXITED(status)) return done(child.task, text);
    if (outcome == kInput) throw InputError(text);
    if (outcome == kLimit) throw LimitError(text);
    throw std::runtime_error(outcome == kFault ? text : died_text(status));
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
