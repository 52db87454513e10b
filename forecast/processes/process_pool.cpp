#include "forecast/processes/process_pool.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <iostream>
#include <new>
#include <optional>
#include <system_error>
#include <utility>

#include "core/error.hpp"

namespace stepcast {

TaskProgress::TaskProgress(std::size_t tasks, std::string what)
    : tasks_(tasks), what_(std::move(what)), progress_(std::cerr, progress_style()) {}

void TaskProgress::one_done() {
  done_ = std::min(done_ + 1, tasks_);
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - started_;
  progress_.update(progress_text(done_, tasks_, {elapsed.count()}, what_), {elapsed.count()});
}

namespace {

using End = TaskResult::End;

struct Child {
  pid_t pid = 0;
  int socket = -1;
  std::size_t task = 0;
  bool busy = true;    ///< the task has no result so far
  bool fresh = true;   ///< the task is the first of this process
  std::string text{};  ///< bytes of a result that is not complete
};

/// Timeout of poll [ms]. A signal that arrives just before poll starts does not interrupt it; the signal is
/// then handled after this time.
constexpr int kPollTimeout = 200;

/// A process is used up after its first task.
bool one_task_each() {
  return true;
}
constexpr auto kOneTaskEach = one_task_each;

/// A child sends three things for a task: one digit for the way it ended, the length of the text, and the
/// text.
constexpr std::size_t kHeader = 1 + sizeof(std::uint64_t);

std::string framed(End end, const std::string& text) {
  std::string frame(kHeader, static_cast<char>('0' + static_cast<int>(end)));
  const std::uint64_t length = text.size();
  std::memcpy(frame.data() + 1, &length, sizeof length);
  return frame + text;
}

/// Takes the first whole result off the text. @return nothing if the text has no whole result
std::optional<TaskResult> taken_result(std::string& text) {
  std::uint64_t length = 0;
  if (text.size() < kHeader) return std::nullopt;
  std::memcpy(&length, text.data() + 1, sizeof length);
  if (text.size() < kHeader + length) return std::nullopt;
  TaskResult result{static_cast<End>(text.front() - '0'), text.substr(kHeader, length)};
  text.erase(0, kHeader + length);
  return result;
}

using PoolTask = std::function<std::string(std::size_t task)>;

std::string outcome_of(const PoolTask& work, std::size_t task) {
  try {
    return framed(End::done, work(task));
  } catch (const std::exception& error) {
    const ExitCode code = exit_code_of(error);
    const End end = code == ExitCode::bad_input    ? End::input_error
                    : code == ExitCode::over_limit ? End::over_limit
                                                   : End::fault;
    return framed(end, error_text(error));
  }
}

/// Sends everything. @return false if the other process has ended
bool send_all(int socket, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno != EINTR) return false;
    if (sent > 0) bytes.remove_prefix(sent);
  }
  return true;
}

bool send_task(int socket, std::size_t task) {
  return send_all(socket, {reinterpret_cast<const char*>(&task), sizeof task});
}

/// The number of the next task. @return nothing at the end of all tasks
std::optional<std::size_t> received_task(int socket) {
  std::size_t task = 0;
  ssize_t got = 0;
  do {
    got = recv(socket, &task, sizeof task, MSG_WAITALL);
  } while (got < 0 && errno == EINTR);
  return got == sizeof task ? std::optional(task) : std::nullopt;
}

// A handler of failed allocations has no argument, so its data must be global.
int memory_socket = -1;
std::string memory_frame;

/// Ends a process that gets no more memory. An exception would have to unwind coroutines, which needs some.
[[noreturn]] void end_without_memory() {
  send_all(memory_socket, memory_frame);
  _exit(0);
}

[[noreturn]] void run_child(const PoolTask& work, std::size_t first, bool (*used_up)(), int socket,
                            pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // a grandchild is killed too when its parent is killed
  if (getppid() != parent) _exit(1);
  for (const int one : {SIGINT, SIGTERM, SIGHUP}) signal(one, SIG_DFL);
  memory_socket = socket;
  memory_frame = framed(End::over_limit, error_text(std::bad_alloc()));
  std::set_new_handler(end_without_memory);
  for (std::optional<std::size_t> task = first; task; task = received_task(socket)) {
    if (!send_all(socket, outcome_of(work, *task))) _exit(1);
    if (used_up != nullptr && used_up()) break;
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

using Done = std::function<void(std::size_t task, const TaskResult& result)>;

using Done = std::function<void(std::size_t task, const TaskResult& result)>;

class Pool {
 public:
  Pool(std::size_t count, const PoolTask& work, const SharedProcesses& processes,
       const std::function<void()>& meanwhile)
      : count_(count), work_(work), processes_(processes), meanwhile_(meanwhile) {}
  Pool(const Pool&) = delete;
  ~Pool() {
    for (const Child& child : children_) {
      kill(child.pid, SIGKILL);
      close(child.socket);
      waitpid(child.pid, nullptr, 0);
    }
  }

  void run(const Done& done) {
    const std::size_t most = processes_.count;
    for (;;) {
      while (children_.size() < most) {
        const auto task = next_task();
        if (!task) break;
        start(*task);
      }
      if (children_.empty()) return;
      wait();
      for (std::size_t i = children_.size(); i-- > 0;) {
        if (auto result = taken_result(children_[i].text)) go_on(children_[i], *result, done);
        if (children_[i].socket < 0) finish(i, done);
      }
    }
  }

 private:
  std::optional<std::size_t> next_task() {
    if (!again_.empty()) {
      const std::size_t task = again_.back();
      again_.pop_back();
      return task;
    }
    return next_ < count_ ? std::optional(next_++) : std::nullopt;
  }

  void start(std::size_t task) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
      throw std::system_error(errno, std::generic_category(), "socketpair");
    std::fflush(nullptr);  // otherwise the child would write a copy of the parent's buffered output
    const pid_t self = getpid();
    const pid_t pid = fork();
    if (pid < 0) throw std::system_error(errno, std::generic_category(), "fork");
    if (pid == 0) {
      for (const Child& sibling : children_) close(sibling.socket);  // its end must be seen by the parent's
      close(ends[0]);
      run_child(work_, task, processes_.used_up, ends[1], self);
    }
    close(ends[1]);
    children_.push_back({pid, ends[0], task});
  }

  void wait() {
    std::vector<pollfd> waits;
    for (const Child& child : children_) waits.push_back({child.socket, POLLIN, 0});
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
    const ssize_t got = read(child.socket, buffer, sizeof buffer);
    if (got > 0) {
      child.text.append(buffer, got);
    } else if (got == 0 || errno == ECONNRESET) {
      close(child.socket);
      child.socket = -1;
    }
  }

  /// Handles the result of a task and gives its process the next one, if it may have one.
  void go_on(Child& child, const TaskResult& result, const Done& done) {
    const std::size_t ended = child.task;
    child.busy = child.fresh = false;
    if (shares_processes() && child.socket >= 0) {
      if (const auto task = next_task()) {
        child.task = *task;
        child.busy = true;
        send_task(child.socket, *task);  // a process that has ended leaves the task to `finish`
      } else {
        shutdown(child.socket, SHUT_WR);
      }
    }
    done(ended, result);
  }

  /// Handles the end of a process. A task without a result fails if it was the first of its process, and
  /// otherwise is done again.
  void finish(std::size_t index, const Done& done) {
    const Child child = std::move(children_[index]);
    children_.erase(children_.begin() + index);
    int status = 0;
    waitpid(child.pid, &status, 0);
    if (!child.busy) return;
    if (!child.fresh) return again_.push_back(child.task);
    done(child.task, {End::died, died_text(status)});
  }

  bool shares_processes() const { return processes_.used_up != kOneTaskEach; }

  std::size_t count_, next_ = 0;
  const PoolTask& work_;
  SharedProcesses processes_;
  const std::function<void()>& meanwhile_;
  std::vector<std::size_t> again_;  ///< tasks that are done again
  std::vector<Child> children_;
};

}  // namespace

void throw_failure(const TaskResult& result) {
  if (result.end == End::input_error) throw InputError(result.text);
  if (result.end == End::over_limit) throw LimitError(result.text);
  throw std::runtime_error(result.text);
}

void run_tasks(const std::vector<Task>& tasks, int processes,
               const std::function<void(std::size_t task, const std::string& text)>& done,
               const std::function<void()>& meanwhile) {
  const SignalGuard guard;
  const PoolTask work = [&](std::size_t task) { return tasks[task](); };
  Pool(tasks.size(), work, {processes, kOneTaskEach}, meanwhile)
      .run([&](std::size_t task, const TaskResult& result) {
        if (result.end != End::done) throw_failure(result);
        done(task, result.text);
      });
}

void run_shared(std::size_t count, const PoolTask& work, const SharedProcesses& processes, const Done& done) {
  const SignalGuard guard;
  const std::function<void()> nothing;
  Pool(count, work, processes, nothing).run(done);
}

}  // namespace stepcast
