#include "forecast/draws/weighted_draws.hpp"

#include <algorithm>
#include <boost/math/special_functions/erf.hpp>
#include <cmath>
#include <numbers>
#include <numeric>

namespace stepcast {

double normal_quantile(double u) {
  return -std::numbers::sqrt2 * boost::math::erfc_inv(2 * u);
}

std::vector<double> weights_of(const std::vector<double>& logs, double power) {
  const double most = std::ranges::max(logs);
  std::vector<double> weights;
  for (const double one : logs) weights.push_back(std::exp(power * (one - most)));
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  for (double& one : weights) one /= sum;
  return weights;
}

double effective_draws(const std::vector<double>& weights) {
  return 1 / std::inner_product(weights.begin(), weights.end(), weights.begin(), 0.0);
}

std::vector<std::size_t> resampled(const std::vector<double>& weights, std::size_t count) {
  std::vector<std::size_t> chosen;
  double below = 0;
  std::size_t draw = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const double at = (i + 0.5) / count;
    while (draw + 1 < weights.size() && below + weights[draw] < at) below += weights[draw++];
    chosen.push_back(draw);
  }
  return chosen;
}

Proposal proposal_around(const std::vector<std::vector<double>>& inputs, const std::vector<double>& logs) {
  constexpr double kWider = 1.5, kNarrowest = 0.03;
  double power = 1;
  while (effective_draws(weights_of(logs, power)) < logs.size() / 4.0) power *= 0.8;
  const auto weights = weights_of(logs, power);
  const std::size_t count = inputs.front().size();
  Proposal proposal{std::vector<double>(count), std::vector<double>(count)};
  for (std::size_t i = 0; i < count; ++i) {
    double square = 0;
    for (std::size_t draw = 0; draw < inputs.size(); ++draw)
      proposal.mean[i] += weights[draw] * inputs[draw][i];
    for (std::size_t draw = 0; draw < inputs.size(); ++draw)
      square += weights[draw] * std::pow(inputs[draw][i] - proposal.mean[i], 2);
    proposal.deviation[i] = std::max(kNarrowest, kWider * std::sqrt(square));
  }
  return proposal;
}

namespace {

double normal_share(double x) {
  return 0.5 * std::erfc(-x / std::numbers::sqrt2);
}

}  // namespace

std::vector<double> proposed(const Proposal& proposal, const std::vector<double>& cube) {
  std::vector<double> inputs;
  for (std::size_t i = 0; i < cube.size(); ++i) {
    const double centre = proposal.mean[i], deviation = proposal.deviation[i];
    const double low = normal_share(-centre / deviation), high = normal_share((1 - centre) / deviation);
    const double value = centre + deviation * normal_quantile(low + cube[i] * (high - low));
    inputs.push_back(std::clamp(value, 0.0, std::nextafter(1.0, 0.0)));
  }
  return inputs;
}

double log_density(const Proposal& proposal, const std::vector<double>& inputs) {
  double sum = 0;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const double centre = proposal.mean[i], deviation = proposal.deviation[i];
    const double inside = normal_share((1 - centre) / deviation) - normal_share(-centre / deviation);
    const double x = (inputs[i] - centre) / deviation;
    sum += -0.5 * x * x - std::log(deviation * inside);
  }
  return sum;
}

}  // namespace stepcast
