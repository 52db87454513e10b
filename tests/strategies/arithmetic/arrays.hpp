#pragma once

#include <cstdint>
#include <vector>

#include "core/random.hpp"

namespace stepcast::test {

/// Numbers in (-1, 1), different for each salt.
inline std::vector<float> random_floats(std::size_t count, std::uint32_t salt) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    const RandomKey key{1, Purpose::data, salt, 0, static_cast<std::uint32_t>(i)};
    values[i] = 2 * uniform(key) - 1;
  }
  return values;
}

}  // namespace stepcast::test
