#include "sim/network/end_queue.hpp"

#include <catch2/catch.hpp>
#include <map>
#include <utility>

#include "core/random.hpp"

namespace stepcast::end_queue_test {

namespace {

std::size_t random_below(std::uint32_t number, std::uint32_t what, std::size_t below) {
  return uniform_index({13, Purpose::data, number, what, 200}, below);
}

}  // namespace

TEST_CASE("ends leave by date, and those of equal date in the order in which they were added", "[sim]") {
  EndQueue queue;
  std::map<std::pair<double, std::uint64_t>, EndQueue::Index> reference;
  std::uint64_t last = 0;
  double now = 0;
  for (std::uint32_t i = 0; i < 20'000; ++i) {
    const double date = now + static_cast<double>(random_below(i / 3, 0, 4));  // few dates, often repeated
    const auto flow = static_cast<EndQueue::Index>(random_below(i, 1, EndQueue::kMaxFlow));
    const std::uint64_t order = queue.add(date, flow);
    REQUIRE(order > last);
    last = order;
    REQUIRE(reference.emplace(std::pair(date, order), flow).second);
    const std::size_t leave = random_below(i, 2, i / 4000 % 2 == 0 ? 2 : 4);  // grows, then empties
    for (std::size_t k = 0; k < leave && !reference.empty(); ++k) {
      const auto first = reference.begin();
      REQUIRE(!queue.empty());
      REQUIRE(queue.date() == first->first.first);
      REQUIRE(queue.order() == first->first.second);
      REQUIRE(EndQueue::flow_of(queue.order()) == first->second);
      now = queue.date();
      queue.pop();
      reference.erase(first);
    }
  }
  for (; !reference.empty(); reference.erase(reference.begin()), queue.pop())
    REQUIRE(queue.order() == reference.begin()->first.second);
  CHECK(queue.empty());
}

}  // namespace stepcast::end_queue_test
