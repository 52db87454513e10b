#include "strategies/arithmetic/downpour.hpp"

#include <stdexcept>

namespace stepcast {

void accumulate(std::span<const float> gradient, std::span<float> sum) {
  if (gradient.size() != sum.size()) throw std::invalid_argument("accumulate: lengths differ");
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += gradient[i];
}

}  // namespace stepcast
