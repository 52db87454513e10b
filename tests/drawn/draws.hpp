#pragma once

#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "core/random.hpp"

namespace stepcast::drawn {

/// The random choices of one case, one after the other. The same seed and case give the same choices.
class Draws {
 public:
  /// @param attempt  of the case; an earlier one was refused
  Draws(std::uint64_t seed, std::uint32_t number, std::uint32_t attempt)
      : key_{seed, Purpose::data, number, attempt, 0} {}

  double uniform() { return stepcast::uniform(next()); }  ///< in [0, 1)
  bool chance(double probability) { return uniform() < probability; }
  std::size_t index(std::size_t count) { return uniform_index(next(), count); }
  double between(double low, double high) { return low + (high - low) * uniform(); }
  /// Between two numbers above 0, their logarithm evenly distributed.
  double log_between(double low, double high) { return low * std::pow(high / low, uniform()); }

  template <class Value>
  Value one_of(const std::vector<Value>& values) {
    return values[index(values.size())];
  }
  int one_of(std::initializer_list<int> values) { return one_of(std::vector<int>(values)); }
  std::string one_of(std::initializer_list<const char*> words) {
    return one_of(std::vector<std::string>(words.begin(), words.end()));
  }

 private:
  RandomKey next() {
    ++key_.item;
    return key_;
  }

  RandomKey key_;
};

/// The parts one after the other. The order of the draws in a braced list is defined, unlike that in the
/// arguments of a function.
inline std::string joined(std::initializer_list<std::string> parts) {
  std::string text;
  for (const std::string& part : parts) text += part;
  return text;
}

inline std::string short_text(double number) {
  return fmt::format("{:.4g}", number);
}

}  // namespace stepcast::drawn
