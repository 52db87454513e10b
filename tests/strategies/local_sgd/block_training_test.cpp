#include "strategies/local_sgd/block_training.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <numeric>

#include "arithmetic/arrays.hpp"

using namespace stepcast;

TEST_CASE("balanced shares deal out all mini-batches, at least one each", "[strategies]") {
  const int total = GENERATE(7, 8, 100, 1001);
  for (std::uint32_t salt = 0; salt < 20; ++salt) {
    std::vector<double> seconds;
    for (const float value : test::random_floats(7, salt)) seconds.push_back(1.01 + value);
    const std::vector<int> shares = balanced_shares(seconds, total);
    CHECK(std::accumulate(shares.begin(), shares.end(), 0) == total);
    CHECK(*std::min_element(shares.begin(), shares.end()) >= 1);
  }
}

TEST_CASE("balanced shares of equal workers are equal", "[strategies]") {
  CHECK(balanced_shares({2, 2, 2, 2}, 40) == std::vector<int>{10, 10, 10, 10});
  CHECK(balanced_shares({2, 2, 2, 2}, 42) == std::vector<int>{11, 11, 10, 10});
}

TEST_CASE("with balanced shares workers end within about a mini-batch of each other", "[strategies]") {
  const std::vector<double> seconds{1, 2, 1, 3};
  const std::vector<int> shares = balanced_shares(seconds, 400);
  double first = 1e9, last = 0;
  for (std::size_t i = 0; i < seconds.size(); ++i) {
    first = std::min(first, shares[i] * seconds[i]);
    last = std::max(last, shares[i] * seconds[i]);
  }
  CHECK(last - first <= 3 * 2);
  CHECK(last <= 400 / (1 + 0.5 + 1 + 1 / 3.0) + 3);  // the best there is, and one mini-batch
}

TEST_CASE("balanced_shares refuses fewer mini-batches than workers", "[strategies]") {
  CHECK_THROWS_WITH(balanced_shares({1, 1, 1}, 2), "balanced_shares: fewer mini-batches than workers");
}
