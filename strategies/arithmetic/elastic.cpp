#include "strategies/arithmetic/elastic.hpp"

#include <stdexcept>

namespace stepcast {

void elastic_move(double force, std::span<const float> towards, std::span<float> parameters) {
  if (towards.size() != parameters.size()) throw std::invalid_argument("elastic_move: lengths differ");
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const double here = parameters[i];
    parameters[i] = static_cast<float>(here + force * (towards[i] - here));
  }
}

}  // namespace stepcast
