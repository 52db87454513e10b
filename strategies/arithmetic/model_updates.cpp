#include "strategies/arithmetic/model_updates.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace stepcast {

const Words<BlockFilter::Form>& block_form_words() {
  using Form = BlockFilter::Form;
  static const Words<Form> words{{"classical", Form::classical}, {"nesterov", Form::nesterov}};
  return words;
}

void filter_block_update(const BlockFilter& filter, std::span<const float> mean, const BlockState& state,
                         std::span<float> global) {
  if (mean.size() != global.size() || state.model.size() != mean.size() ||
      state.change.size() != mean.size()) {
    throw std::invalid_argument("filter_block_update: lengths differ");
  }
  const double ahead = filter.form == BlockFilter::Form::nesterov ? filter.momentum : 0;
  for (std::size_t i = 0; i < mean.size(); ++i) {
    const double update = double{mean[i]} - global[i];
    const double change = filter.momentum * state.change[i] + filter.learning_rate * update;
    const double model = state.model[i] + change;
    state.change[i] = change;
    state.model[i] = model;
    global[i] = model + ahead * change;
  }
}

void accumulate(std::span<const float> gradient, std::span<float> sum) {
  if (gradient.size() != sum.size()) throw std::invalid_argument("accumulate: lengths differ");
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += gradient[i];
}

void divide(float divisor, std::span<float> values) {
  for (float& value : values) value /= divisor;
}

void elastic_move(double force, std::span<const float> towards, std::span<float> parameters) {
  if (towards.size() != parameters.size()) throw std::invalid_argument("elastic_move: lengths differ");
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const double here = parameters[i];
    parameters[i] = here + force * (towards[i] - here);
  }
}

void match_energy(const EnergyMatching& options, std::span<const float> gradient,
                  std::span<const float> center, const EnergyMatchingState& state, std::span<float> update) {
  const std::size_t length = gradient.size();
  if (center.size() != length || update.size() != length || state.proxy.size() != length ||
      state.center.size() != length) {
    throw std::invalid_argument("match_energy: lengths differ");
  }
  for (std::size_t i = 0; i < length; ++i) {
    const double step = -options.learning_rate * gradient[i];
    const double proxy = options.momentum * state.proxy[i] + step;
    const double moved = std::abs(double{center[i]} - state.center[i]);
    const double scale = (options.kappa * std::abs(proxy) - moved) / std::abs(step + options.epsilon);
    update[i] = std::clamp(scale, 0.0, options.largest) * step;
    state.proxy[i] = proxy;
    state.center[i] = center[i];
  }
}

int lbfgs_operations(int history) {
  constexpr int kSlopes = 2, kDifferences = 2, kScaling = 1, kStep = 1;
  return 4 * history + kSlopes + kDifferences + kScaling + kStep;
}

bool LineSearch::accepts(double derivative) {
  constexpr double kDelta = 0.1, kSigma = 0.9;
  const bool too_long = !std::isfinite(derivative) || derivative > (2 * kDelta - 1) * slope;
  const bool too_short = !too_long && derivative < kSigma * slope;
  if ((!too_long && !too_short) || trials == kMaxRefused) return true;
  ++trials;
  (too_long ? high : low) = length;
  length = std::isfinite(high) ? (low + high) / 2 : 2 * length;
  return false;
}

}  // namespace stepcast
