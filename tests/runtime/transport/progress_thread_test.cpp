#include "runtime/transport/progress_thread.hpp"

#include <atomic>
#include <catch2/catch.hpp>
#include <future>

namespace stepcast::progress_thread_test {

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
