#include "strategies/arithmetic/block_filter.hpp"

#include <stdexcept>

namespace stepcast {

const std::vector<std::string>& block_form_names() {
  static const std::vector<std::string> names{"classical", "nesterov"};
  return names;
}

void filter_block_update(const BlockFilter& filter, std::span<const float> mean, const BlockState& state,
                         std::span<float> global) {
  if (mean.size() != global.size() || state.model.size() != mean.size() ||
      state.change.size() != mean.size()) {
    throw std::invalid_argument("filter_block_update: lengths differ");
  }
  const double ahead = filter.form == BlockFilter::Form::nesterov ? filter.momentum : 0;
  for (std::size_t i = 0; i < mean.size(); ++i) {
    const double update = static_cast<double>(mean[i]) - global[i];
    const double change = filter.momentum * state.change[i] + filter.learning_rate * update;
    const double model = state.model[i] + change;
    state.change[i] = static_cast<float>(change);
    state.model[i] = static_cast<float>(model);
    global[i] = static_cast<float>(model + ahead * change);
  }
}

}  // namespace stepcast
