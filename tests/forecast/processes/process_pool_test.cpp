#include "forecast/processes/process_pool.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <map>
#include <set>

#include "core/error.hpp"
#include "forecast/processes/journal.hpp"
#include "tests/report/temporary_folder.hpp"

using namespace stepcast;

namespace {

std::map<std::size_t, std::string> results_of(const std::vector<Task>& tasks, int processes) {
  std::map<std::size_t, std::string> results;
  run_tasks(tasks, processes,
            [&](std::size_t task, const std::string& text) { CHECK(results.emplace(task, text).second); });
  return results;
}

std::string wait_for_ever() {
  for (;;) pause();
}

bool no_children_left() {
  return waitpid(-1, nullptr, WNOHANG) == -1 && errno == ECHILD;
}

/// Tells `parent` of the failure of one task while another would never end.
template <class Error>
void check_fails_with(const Task& failing, const std::string& message) {
  for (const int processes : {1, 2}) {
    std::vector<Task> tasks{failing, wait_for_ever};
    if (processes == 2) std::swap(tasks[0], tasks[1]);
    CHECK_THROWS_AS(results_of(tasks, processes), Error);
    CHECK_THROWS_WITH(results_of(tasks, processes), message);
    CHECK(no_children_left());
  }
}

}  // namespace

TEST_CASE("every task runs once and returns its text, in any number of processes", "[commands]") {
  std::vector<Task> tasks;
  for (int i = 0; i < 20; ++i) tasks.push_back([i] { return std::to_string(i * i); });
  for (const int processes : {1, 2, 7, 100}) {
    const auto results = results_of(tasks, processes);
    REQUIRE(results.size() == tasks.size());
    for (const auto& [task, text] : results) CHECK(text == std::to_string(task * task));
  }
  CHECK(results_of({}, 3).empty());
  CHECK(results_of({[] { return std::string(); }}, 1).at(0).empty());
}

TEST_CASE("a task runs in a process of its own", "[commands]") {
  const pid_t self = getpid();
  int changed = 0;
  const auto results = results_of({[&] {
                                    changed = 1;
                                    return std::to_string(getpid() != self && getppid() == self);
                                  }},
                                  1);
  CHECK(results.at(0) == "1");
  CHECK(changed == 0);
}

TEST_CASE("a text of megabytes and of any bytes arrives whole", "[commands]") {
  std::string text;
  for (int i = 0; i < 3'000'000; ++i) text += static_cast<char>(i * 7919U >> 3);
  const auto results = results_of({[&] { return text; }, [&] { return text + "x"; }}, 2);
  CHECK((results.at(0) == text));
  CHECK((results.at(1) == text + "x"));
}

TEST_CASE("as many tasks run at the same time as there are processes, and no more", "[commands]") {
  struct Shared {
    std::atomic<int> running, most, started;
  };
  void* memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  REQUIRE(memory != MAP_FAILED);
  auto* shared = new (memory) Shared{};
  const std::vector<Task> tasks(9, [shared] {
    const int running = ++shared->running;
    int most = shared->most;
    while (most < running && !shared->most.compare_exchange_weak(most, running)) continue;
    ++shared->started;
    while (shared->started < 3) sched_yield();
    --shared->running;
    return std::string();
  });
  results_of(tasks, 3);
  CHECK(shared->most == 3);
  munmap(memory, sizeof(Shared));
}

TEST_CASE("an exception of a task is thrown again with its text, and the other processes end", "[commands]") {
  check_fails_with<InputError>([]() -> std::string { throw InputError("f.yaml:1:1: no"); }, "f.yaml:1:1: no");
  check_fails_with<LimitError>([]() -> std::string { throw LimitError("too much"); }, "too much");
  check_fails_with<std::runtime_error>([]() -> std::string { throw std::logic_error("a fault"); }, "a fault");
  check_fails_with<LimitError>([]() -> std::string { throw std::bad_alloc(); }, error_text(std::bad_alloc()));
  check_fails_with<LimitError>(
      []() -> std::string {
        std::get_new_handler()();
        return "";
      },
      error_text(std::bad_alloc()));
}

TEST_CASE("a process that dies is a failure, whatever it had written", "[commands]") {
  check_fails_with<std::runtime_error>([]() -> std::string { _exit(0); },
                                       "a simulation process ended without a result");
  check_fails_with<std::runtime_error>(
      []() -> std::string {
        kill(getpid(), SIGKILL);
        return "x";
      },
      "a simulation process was killed by signal 9; the machine may be out of memory: use fewer processes "
      "(-j)");
}

TEST_CASE("an exception of the receiver of results stops the other processes", "[commands]") {
  const auto refuse = [](std::size_t, const std::string&) { throw InputError("disk full"); };
  CHECK_THROWS_WITH(run_tasks({wait_for_ever, [] { return std::string("x"); }}, 2, refuse), "disk full");
  CHECK(no_children_left());
}

TEST_CASE("SIGINT and SIGTERM interrupt, and are handled as before afterwards", "[commands]") {
  for (const int number : {SIGINT, SIGTERM}) {
    struct sigaction before {
    }, after{};
    sigaction(number, nullptr, &before);
    const Task signals = [number]() -> std::string {
      kill(getppid(), number);
      return wait_for_ever();
    };
    CHECK_THROWS_AS(results_of({signals}, 1), Interrupted);
    CHECK(no_children_left());
    sigaction(number, nullptr, &after);
    CHECK(after.sa_handler == before.sa_handler);
  }
  CHECK(results_of({[] { return std::string("y"); }}, 1).at(0) == "y");
}

TEST_CASE("children of a stopped task end with it", "[commands]") {
  int started[2], held[2];
  REQUIRE(pipe(started) == 0);
  REQUIRE(pipe(held) == 0);
  const Task nested = [&] {
    run_tasks({[&] {
                const bool text = write(started[1], "x", 1) == 1;
                return text ? wait_for_ever() : std::string();
              }},
              1, [](std::size_t, const std::string&) {});
    return std::string();
  };
  const Task failing = [&]() -> std::string {
    char byte = 0;
    const bool text = read(started[0], &byte, 1) == 1;
    throw InputError(text ? "after the start" : "no byte");
  };
  CHECK_THROWS_WITH(results_of({nested, failing}, 2), "after the start");
  close(held[1]);
  pollfd ended{held[0], POLLIN, 0};
  CHECK(poll(&ended, 1, 60'000) == 1);  // end of file once no process holds the other end
  CHECK((ended.revents & POLLHUP) != 0);
  for (const int descriptor : {started[0], started[1], held[0]}) close(descriptor);
}

namespace {

/// The results of tasks in shared processes, by task.
std::map<std::size_t, TaskResult> shared_results(std::size_t count,
                                                 const std::function<std::string(std::size_t)>& work,
                                                 const SharedProcesses& processes) {
  std::map<std::size_t, TaskResult> results;
  run_shared(count, work, processes, [&](std::size_t task, const TaskResult& result) {
    CHECK(results.emplace(task, result).second);
  });
  CHECK(no_children_left());
  return results;
}

bool always() {
  return true;
}

}  // namespace

TEST_CASE("shared processes run every task once, in few processes or in one for each", "[commands]") {
  const auto pid = [](std::size_t task) { return std::to_string(task) + " " + std::to_string(getpid()); };
  for (const int count : {1, 2, 7}) {
    std::set<std::string> pids;
    const auto results = shared_results(40, pid, {count});
    REQUIRE(results.size() == 40);
    for (const auto& [task, result] : results) {
      CHECK(result.text.starts_with(std::to_string(task) + " "));
      pids.insert(result.text.substr(result.text.find(' ')));
    }
    CHECK(std::ssize(pids) <= count);
    pids.clear();
    for (const auto& [task, result] : shared_results(40, pid, {count, always}))
      pids.insert(result.text.substr(result.text.find(' ')));
    CHECK(pids.size() == 40);
  }
  CHECK(shared_results(0, pid, {3}).empty());
}

TEST_CASE("a task that fails or dies in a shared process ends no other task", "[commands][errors]") {
  const auto work = [](std::size_t task) -> std::string {
    if (task == 3) throw InputError("no");
    if (task == 5) _exit(0);
    if (task == 7) kill(getpid(), SIGTERM);
    return std::string(100'000 * (task + 1), 'x');
  };
  for (const int count : {1, 2, 4}) {
    const auto results = shared_results(10, work, {count});
    REQUIRE(results.size() == 10);
    for (const auto& [task, result] : results) {
      if (result.end == TaskResult::End::done) CHECK(result.text.size() == 100'000 * (task + 1));
    }
    CHECK(results.at(3).end == TaskResult::End::input_error);
    CHECK(results.at(3).text == "no");
    CHECK(results.at(5).end == TaskResult::End::died);
    CHECK(results.at(5).text == "a simulation process ended without a result");
    CHECK(results.at(7).text == "a simulation process was killed by signal 15");
    CHECK_THROWS_AS(throw_failure(results.at(3)), InputError);
    CHECK_THROWS_AS(throw_failure(results.at(7)), std::runtime_error);
  }
}

TEST_CASE("a journal is flushed to the disk once a second and at the end, not with every line",
          "[commands]") {
  static int flushed = 0;
  const TemporaryFolder folder;
  JournalWriter journal(folder.path() / "j.jsonl", [](const std::filesystem::path&) { ++flushed; });
  journal.flush();
  CHECK(flushed == 0);  // there is nothing to flush, and no file
  const auto begin = std::chrono::steady_clock::now();
  const auto seconds = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  int lines = 0;
  for (; seconds() < 2.5; ++lines) journal.add("s", fmt::format("{}", lines), Row{});
  CHECK(lines > 100);
  CHECK(flushed >= 1);  // twice, unless this process was held up
  CHECK(flushed <= 2);
  const int before = flushed;
  journal.flush();
  CHECK(flushed == before + 1);
}
