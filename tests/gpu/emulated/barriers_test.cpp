#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <functional>

#include "cuda_on_host.hpp"

// The emulated block shows barriers that are missing: all tests of kernels run with drawn orders of threads.
namespace stepcast::test {
namespace {

using Values = std::array<int, 64>;

void reverse(bool waits, const int* from, int* to) {
  __shared__ int all[64];
  all[threadIdx.x] = from[threadIdx.x];
  if (waits) __syncthreads();
  to[threadIdx.x] = all[63 - threadIdx.x];
}

/// Number of 30 launches whose result is wrong.
int wrong_launches(bool waits) {
  int wrong = 0;
  for (int launch = 0; launch < 30; ++launch) {
    Values from{}, to{}, expected{};
    for (int i = 0; i < 64; ++i) {
      from[i] = 1000 * launch + i + 1;
      expected[63 - i] = 1000 * launch + i + 1;
    }
    const int* const in = from.data();
    int* const out = to.data();
    EMULATE(reverse, (dim3(1), dim3(64), 0, nullptr), waits, in, out);
    wrong += to == expected ? 0 : 1;
  }
  return wrong;
}

}  // namespace

TEST_CASE("a kernel without a barrier that it needs gives wrong results on the host", "[emulated]") {
  CHECK(wrong_launches(true) == 0);
  CHECK(wrong_launches(false) == 30);
}

TEST_CASE("threads of a block run in ascending, descending and shuffled orders", "[emulated]") {
  int ascending = 0, descending = 0;
  for (int launch = 0; launch < 60; ++launch) {
    Values places{};
    int next = 0;
    int *const place = &next, *const to = places.data();
    emulated::launch(emulated::Shape(dim3(1), dim3(64), 0, nullptr), [=] { to[threadIdx.x] = (*place)++; });
    ascending += std::ranges::is_sorted(places) ? 1 : 0;
    descending += std::ranges::is_sorted(places, std::greater<>()) ? 1 : 0;
  }
  CHECK(ascending > 5);
  CHECK(descending > 5);
  CHECK(ascending + descending < 55);
}

}  // namespace stepcast::test
