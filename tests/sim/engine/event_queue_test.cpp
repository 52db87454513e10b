#include "sim/engine/event_queue.hpp"

#include <catch2/catch.hpp>
#include <queue>

#include "core/random.hpp"

namespace stepcast::event_queue_test {

namespace {

struct Later {
  bool operator()(const Event& a, const Event& b) const { return a.key() > b.key(); }
};

std::size_t random_below(std::uint32_t number, std::uint32_t what, std::size_t below) {
  return uniform_index({12, Purpose::data, number, what, 200}, below);
}

}  // namespace

TEST_CASE("events leave in the order of date and sequence, in whatever order they came", "[sim]") {
  EventQueue queue;
  std::priority_queue<Event, std::vector<Event>, Later> reference;
  double now = 0;
  for (std::uint32_t i = 0; i < 20'000; ++i) {
    const std::size_t kind = random_below(i, 0, 10);  // rows that rise, one that falls, dates that are equal
    const double after = kind < 6 ? 0.1 * kind : 1e-3 * random_below(i, 1, 1000);
    const Event event{kind == 9 ? now : now + after, i};
    queue.push(event);
    reference.push(event);
    const std::size_t leave = random_below(i, 2, i / 4000 % 2 == 0 ? 2 : 4);  // grows, then empties
    for (std::size_t k = 0; k < leave && !reference.empty(); ++k) {
      REQUIRE(!queue.empty());
      REQUIRE(queue.top().order == reference.top().order);
      now = queue.top().date;
      queue.pop();
      reference.pop();
    }
  }
  while (!reference.empty()) {
    REQUIRE(queue.top().order == reference.top().order);
    queue.pop();
    reference.pop();
  }
  CHECK(queue.empty());
}

}  // namespace stepcast::event_queue_test
