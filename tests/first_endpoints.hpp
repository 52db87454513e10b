#pragma once

#include <numeric>
#include <vector>

namespace stepcast::test {

/// The first `count` endpoints of a platform: 0, 1, ..., count - 1.
inline std::vector<int> first_endpoints(int count) {
  std::vector<int> endpoints(count);
  std::iota(endpoints.begin(), endpoints.end(), 0);
  return endpoints;
}

}  // namespace stepcast::test
