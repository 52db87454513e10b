#include "sim/engine/engine.hpp"

#include <catch2/catch.hpp>
#include <stdexcept>
#include <vector>

namespace stepcast::engine_test {

TEST_CASE("calls of equal date are made in the order of the requests", "[sim]") {
  Engine engine(std::vector<BytesPerSecond>{});
  std::vector<int> order;
  for (int i = 0; i < 100; ++i) engine.at(i % 2, [&order, i] { order.push_back(i); });
  engine.run();
  REQUIRE(order.size() == 100);
  for (std::size_t i = 0; i < 50; ++i) {
    CHECK(order[i] == static_cast<int>(2 * i));
    CHECK(order[50 + i] == static_cast<int>(2 * i + 1));
  }
}

TEST_CASE("calls at the present date follow those that were requested for it before", "[sim]") {
  Engine engine(std::vector<BytesPerSecond>{});
  std::vector<int> order;
  engine.at(1, [&] {
    order.push_back(1);
    engine.at(2, [&] { order.push_back(4); });
    engine.at(0, [&] { order.push_back(3); });  // a past date is the present one
  });
  engine.at(1, [&] { order.push_back(2); });
  engine.run();
  CHECK(order == std::vector<int>{1, 2, 3, 4});
  CHECK(engine.now() == 2);
}

TEST_CASE("flows share a link fairly, and a link listed twice carries twice as much", "[sim]") {
  Engine engine(std::vector<BytesPerSecond>{{1e9}, {4e9}});
  std::vector<double> ends(3);
  engine.at(1, [&] {
    engine.start_flow(std::vector{0}, {1e9}, [&] { ends[0] = engine.now(); });
    engine.start_flow(std::vector{0}, {0.5e9}, [&] { ends[1] = engine.now(); });
  });
  engine.at(10, [&] { engine.start_flow(std::vector{0, 0, 1}, {1e9}, [&] { ends[2] = engine.now(); }); });
  engine.run();
  CHECK(ends[1] == Approx(2).epsilon(1e-12));
  CHECK(ends[0] == Approx(2.5).epsilon(1e-12));
  CHECK(ends[2] == Approx(12).epsilon(1e-12));
  CHECK(engine.flows() == 3);
}

TEST_CASE("a flow of size 0 and a flow over no links end at once", "[sim]") {
  Engine engine(std::vector<BytesPerSecond>{{1e9}});
  int done = 0;
  engine.at(1, [&] {
    engine.start_flow(std::vector{0}, {0}, [&] { ++done; });
    engine.start_flow(std::vector<int>{}, {1e9}, [&] { ++done; });
    CHECK(done == 0);  // never from inside the call
  });
  engine.run();
  CHECK(done == 2);
  CHECK(engine.now() == 1);
}

TEST_CASE("an exception in a callback comes out of run", "[sim]") {
  Engine engine(std::vector<BytesPerSecond>{});
  engine.at(1, [] { throw std::runtime_error("first"); });
  engine.at(2, [] { throw std::runtime_error("second"); });
  CHECK_THROWS_WITH(engine.run(), "first");
}

TEST_CASE("work goes on at 1 / slow-down while anything communicates", "[sim]") {
  Engine engine(std::vector<BytesPerSecond>{});
  WorkClock clock(engine, {2, 1});
  std::vector<double> ends;
  engine.at(0, [&] {
    for (const double work : {3.0, 1.0, 2.0}) clock.at_work(work, [&] { ends.push_back(engine.now()); });
  });
  engine.at(0.5, [&] { clock.collective(+1); });
  engine.at(1.0, [&] { clock.collective(+1); });
  engine.at(2.0, [&] { clock.collective(-1); });
  engine.at(2.5, [&] { clock.collective(-1); });
  engine.run();
  CHECK(ends == std::vector<double>{1.5, 3.0, 4.0});
}

}  // namespace stepcast::engine_test
