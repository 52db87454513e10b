#include <catch2/catch.hpp>
#include <cmath>
#include <vector>

#include "ranks.hpp"
#include "runtime/host_noise/repeated_timing.hpp"

namespace stepcast::clock_offset_test {

TEST_CASE("ranks with one clock are apart by less than a round trip", "[validate]") {
  for (const char* kind : {"memory", "sockets"}) {
    std::vector<double> offsets(3, 1);
    run_ranks(kind, 3, [&](Transport& transport, Transport&) {
      offsets[static_cast<std::size_t>(transport.rank())] = clock_offset_to_rank_0(transport);
    });
    CHECK(offsets[0] == 0);
    for (const double offset : offsets) CHECK(std::abs(offset) < 0.5);  // a busy machine may suspend a thread
  }
}

TEST_CASE("texts of any length arrive on rank 0", "[validate]") {
  const std::vector<std::string> sent{"", "seven b", std::string(100'001, 'x') + '\0' + "end"};
  std::vector<std::string> got;
  run_ranks("sockets", 3, [&](Transport& transport, Transport&) {
    const auto all = gather_texts_on_rank_0(transport, sent[static_cast<std::size_t>(transport.rank())]);
    if (transport.rank() == 0) got = all;
  });
  CHECK(got == sent);
}

}  // namespace stepcast::clock_offset_test
