#include "validate/leisure.hpp"

#include <catch2/catch.hpp>
#include <chrono>
#include <future>
#include <thread>

#include "validate/communication_thread.hpp"
#include "validate/completions.hpp"

using namespace stepcast;

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

TEST_CASE("a core is at leisure while its program waits, until what it waits for is there", "[validate]") {
  Leisure leisure;
  CHECK(leisure.for_collectives());
  std::atomic<int> begun = 0;
  Completions completions(&leisure, [&begun] { ++begun; });
  std::promise<void> looked;
  Pending got;
  std::thread program([&] {
    const Computing computing(&leisure);
    got = completions.next();
    looked.get_future().wait();
  });
  REQUIRE(comes_true([&] { return begun == 1 && leisure.for_collectives(); }));
  const auto operation = std::make_shared<Operation>();
  completions.post(operation);
  CHECK_FALSE(leisure.for_collectives());  // whether or not the program has its core back
  looked.set_value();
  program.join();
  CHECK(got == operation);
  CHECK(leisure.for_collectives());
}

TEST_CASE("where a collective is under way, who carries messages leaves it the core", "[validate]") {
  Leisure leisure;
  std::promise<void> end;
  {
    CommunicationThread thread(nullptr, &leisure);
    thread.submit([&] { end.get_future().wait(); });
    CHECK(leisure.for_collectives());
    CHECK_FALSE(leisure.for_messages());
    end.set_value();
  }
  CHECK(leisure.for_messages());
}
