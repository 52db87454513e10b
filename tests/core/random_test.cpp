#include "core/random.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <stdexcept>
#include <vector>

using namespace stepcast;

TEST_CASE("the same key gives the same number and each field of the key changes it", "[core]") {
  const RandomKey key{7, Purpose::jitter, 1, 2, 3};
  const double number = uniform(key);
  CHECK(number == uniform(key));
  for (const RandomKey& other :
       {RandomKey{8, Purpose::jitter, 1, 2, 3}, RandomKey{7, Purpose::data, 1, 2, 3},
        RandomKey{7, Purpose::jitter, 2, 2, 3}, RandomKey{7, Purpose::jitter, 1, 3, 3},
        RandomKey{7, Purpose::jitter, 1, 2, 4}}) {
    CHECK(number != uniform(other));
  }
}

TEST_CASE("a block of normal numbers is that of single ones, to the bit", "[core]") {
  for (const std::size_t count : {0, 1, 7, 8, 9, 31, 32}) {
    const RandomKey key{0x123456789abcdef0, Purpose::straggler, 5, static_cast<std::uint32_t>(count), 0};
    std::vector<std::uint32_t> items;
    for (std::uint32_t i = 0; i < count; ++i) items.push_back(0x87654321U * i);
    std::vector<double> numbers(count);
    normal_numbers(key, items, numbers);
    for (std::size_t i = 0; i < count; ++i) {
      RandomKey own = key;
      own.item = items[i];
      CHECK(numbers[i] == normal(own));
    }
  }
  std::vector<std::uint32_t> many(kNormalBlock + 1);
  std::vector<double> numbers(many.size());
  CHECK_THROWS_AS(normal_numbers({}, many, numbers), std::invalid_argument);
}

TEST_CASE("uniform and normal numbers have the moments of their law", "[core]") {
  constexpr int kCount = 100'000;
  double sum = 0, square = 0, normal_sum = 0, normal_square = 0;
  for (std::uint32_t i = 0; i < kCount; ++i) {
    const double u = uniform({1, Purpose::jitter, i, 0, 0});
    REQUIRE((u >= 0 && u < 1));
    const double n = normal({1, Purpose::straggler, i, 0, 0});
    sum += u;
    square += u * u;
    normal_sum += n;
    normal_square += n * n;
  }
  // Five standard errors of each mean.
  CHECK(sum / kCount == Approx(0.5).margin(5 * 0.289 / std::sqrt(kCount)));
  CHECK(square / kCount == Approx(1.0 / 3).margin(5 * 0.298 / std::sqrt(kCount)));
  CHECK(normal_sum / kCount == Approx(0).margin(5 / std::sqrt(kCount)));
  CHECK(normal_square / kCount == Approx(1).margin(5 * 1.414 / std::sqrt(kCount)));
}

TEST_CASE("a permutation holds every index once", "[core]") {
  auto order = permutation({3, Purpose::placement, 0, 0, 0}, 1000);
  CHECK_FALSE(std::is_sorted(order.begin(), order.end()));
  std::sort(order.begin(), order.end());
  for (int i = 0; i < 1000; ++i) REQUIRE(order[i] == i);
}
