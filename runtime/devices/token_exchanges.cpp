#include "runtime/devices/token_exchanges.hpp"

namespace stepcast {

TokenSums::TokenSums(Network& network, const SharedPart& part) : network_(network) {
  for (std::size_t layer = 0; layer < part.summed.size(); ++layer) {
    if (!part.summed[layer] || !network.contains(layer)) continue;
    for (const ParameterView& array : network.parameters(layer)) {
      runs_.push_back(
          {static_cast<std::size_t>(array.value - network.all_parameters().value), array.elements});
      elements_ += array.elements;
    }
  }
  memory_ = network.backend().allocate(elements_);
}

void TokenSums::copy(bool out) {
  float* const gradients = network_.all_parameters().gradient;
  float* buffer = memory_.get();
  for (const Run& run : runs_) {
    const std::int64_t size = run.size;
    const BoxMove row{{size}, {1}, {1}};
    float* const own = gradients + run.begin;
    network_.backend().move(row, out ? own : buffer, out ? buffer : own);
    buffer += run.size;
  }
}

}  // namespace stepcast
