#include "runtime/transport/progress_thread.hpp"

#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <future>
#include <thread>

namespace stepcast::thread_scheduling_test {

namespace {

bool comes_true(const std::function<bool()>& condition) {
  using Clock = std::chrono::steady_clock;
  for (const auto begin = Clock::now(); Clock::now() - begin < std::chrono::seconds(20);) {
    if (condition()) return true;
    std::this_thread::yield();
  }
  return false;
}

}  // namespace

TEST_CASE("a progress thread may poll while the program waits, until its operation has completed",
          "[validate]") {
  PollingPolicy polling;
  CHECK(polling.may_poll_for_collectives());
  std::atomic<int> begun = 0;
  CompletionQueue completions(&polling, [&begun] { ++begun; });
  std::promise<void> looked;
  Pending got;
  std::thread program([&] {
    const ComputeScope computing(&polling);
    got = completions.next();
    looked.get_future().wait();
  });
  REQUIRE(comes_true([&] { return begun == 1 && polling.may_poll_for_collectives(); }));
  const auto operation = std::make_shared<Operation>();
  completions.post(operation);
  CHECK_FALSE(polling.may_poll_for_collectives());  // whether or not the program has its core back
  looked.set_value();
  program.join();
  CHECK(got == operation);
  CHECK(polling.may_poll_for_collectives());
}

TEST_CASE("the message thread does not poll while a collective is pending", "[validate]") {
  PollingPolicy polling;
  std::promise<void> end;
  {
    ProgressThread thread(nullptr, &polling);
    thread.submit([&] { end.get_future().wait(); });
    CHECK(polling.may_poll_for_collectives());
    CHECK_FALSE(polling.may_poll_for_messages());
    end.set_value();
  }
  CHECK(polling.may_poll_for_messages());
}

}  // namespace stepcast::thread_scheduling_test

namespace stepcast::progress_thread_test {

TEST_CASE("a program waits for an operation that takes longer than a second, and gets its error",
          "[validate][transport][faults]") {
  CompletionQueue completions;
  const auto operation = std::make_shared<Operation>();
  operation->error = std::make_exception_ptr(std::runtime_error("too slow"));
  ProgressThread thread;
  thread.submit([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(1200));
    completions.post(operation);
  });
  CHECK_THROWS_WITH(completions.await_next(), "too slow");
}

TEST_CASE("discarded work never runs, and what has begun is waited for", "[validate][transport][faults]") {
  PollingPolicy polling;
  std::atomic<int> ran = 0;
  std::promise<void> begun, go_on;
  {
    ProgressThread thread(nullptr, &polling);
    thread.submit([&] {
      begun.set_value();
      go_on.get_future().wait();
      ++ran;
    });
    begun.get_future().wait();
    const auto alive = std::make_shared<int>(1);
    for (int i = 0; i < 3; ++i) thread.submit([&ran, alive] { ran += 100 * *alive; });
    CHECK(alive.use_count() == 4);
    thread.discard();
    CHECK(alive.use_count() == 1);  // what the work held is free at once
    CHECK(polling.pending_collectives.load() == 1);
    go_on.set_value();
    std::promise<void> last;
    thread.submit([&] { last.set_value(); });
    last.get_future().wait();
  }
  CHECK(ran == 1);
  CHECK(polling.pending_collectives.load() == 0);
}

}  // namespace stepcast::progress_thread_test
