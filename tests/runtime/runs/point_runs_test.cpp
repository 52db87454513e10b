#include "runtime/runs/point_runs.hpp"

#include <catch2/catch.hpp>
#include <filesystem>
#include <future>
#include <thread>
#include <vector>

#include "../small_training.hpp"
#include "runtime/runs/input_loader.hpp"
#include "tests/report/temporary_folder.hpp"

namespace stepcast::point_runs_test {
TEST_CASE("runs at the reference speed count, and the nearest others if there are too few", "[validate]") {
  const double off = 2 * kMaxSpeedDeviation;
  const std::vector<RunQuality> runs{{0, false, off},
                                     {1, true, 0},
                                     {0, false, 0},
                                     {1, false, 2 * off},
                                     {0, true, 0},
                                     {1, false, off},
                                     {0, false, kMaxSpeedDeviation},
                                     {1, false, 3 * off}};
  CHECK(select_runs(runs, 2) == std::vector<bool>{false, false, true, true, false, true, true, false});
  CHECK(select_runs(runs, 1) == std::vector<bool>{false, false, true, false, false, true, true, false});
  CHECK(select_runs({}, 1).empty());
}

TEST_CASE("points are run until enough runs count or their budget is used up", "[validate]") {
  const double off = 2 * kMaxSpeedDeviation;
  const std::vector<RunQuality> runs{{0, false, 0}, {0, true, 0},   {1, false, off}, {1, false, off},
                                     {2, true, 0},  {2, true, off}, {2, true, 0},    {3, false, off}};
  CHECK(unfinished_points(runs, 5, {1, 2, 3}) == std::vector<std::size_t>{3, 4});
  CHECK(unfinished_points(runs, 5, {2, 2, 3}) == std::vector<std::size_t>{0, 3, 4});
  CHECK(unfinished_points(runs, 5, {2, 3, 4}) == std::vector<std::size_t>{0, 1, 2, 3, 4});
}

TEST_CASE("the input of a rank is read beyond its end and leaves no file behind", "[runtime]") {
  const TemporaryFolder folder;
  RankInput input(folder.path(), 20 << 20);
  CHECK(std::filesystem::is_empty(folder.path()));
  for (const std::int64_t bytes : {1, 4096, 5000, 70 << 20, 3 << 20, 33 << 20}) input.read(bytes);
}

TEST_CASE("input in a folder that does not exist is refused", "[runtime]") {
  CHECK_THROWS_WITH(RankInput("/nonexistent", 1), Catch::Contains("/nonexistent"));
}

TEST_CASE("loads end in the order in which they were started", "[runtime]") {
  const TemporaryFolder folder;
  InputLoader loader(folder.path(), 1 << 20);
  std::vector<int> order;
  std::promise<void> last;
  for (int i = 0; i < 4; ++i) {
    loader.start(i == 0 ? 16 << 20 : 1, [&order, &last, i](std::exception_ptr error) {
      CHECK(error == nullptr);
      order.push_back(i);
      if (i == 3) last.set_value();
    });
  }
  last.get_future().wait();
  CHECK(order == std::vector<int>{0, 1, 2, 3});
}

TEST_CASE("loads are pending until they have ended or were discarded", "[runtime]") {
  const TemporaryFolder folder;
  PollingPolicy polling;
  InputLoader loader(folder.path(), 1 << 20, &polling);
  std::promise<void> began, go;
  loader.start(1, [&](std::exception_ptr) {
    began.set_value();
    go.get_future().wait();
  });
  began.get_future().wait();
  for (int i = 0; i < 3; ++i) loader.start(1, [](std::exception_ptr) { FAIL("a discarded load was made"); });
  CHECK(polling.pending_loads == 4);
  loader.thread().discard();
  CHECK(polling.pending_loads == 1);
  go.set_value();
  while (polling.pending_loads > 0) std::this_thread::yield();
}

TEST_CASE("workers that load their input end with the parameters of workers that do not", "[runtime]") {
  const Optimizer optimizer{.learning_rate = 0.1};
  for (const char* text :
       {"{kind: synchronous, bucket: tensor}", "{kind: model_averaging, mini_batches: 2}"}) {
    Plan plan = plan_of(text, 2, 0, 5);
    const auto without = trained(plan, optimizer);
    plan.load_data = true;
    for (Workload& one : plan.workloads) one.input = {100'000};
    CHECK(trained(plan, optimizer) == without);
  }
}
}  // namespace stepcast::point_runs_test
