#include "campaigns/bayesian.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <stdexcept>

namespace stepcast {
namespace {

/// Scales the values to mean 0 and variance 1, so that one grid of hyper-parameters fits values of any size.
std::vector<double> standardized(std::vector<double> values) {
  double sum = 0, squares = 0;
  for (const double value : values) sum += value;
  const double mean = sum / static_cast<double>(values.size());
  for (double& value : values) squares += (value - mean) * (value - mean);
  const double deviation = std::sqrt(squares / static_cast<double>(values.size()));
  for (double& value : values) value = deviation > 0 ? (value - mean) / deviation : 0;
  return values;
}

}  // namespace

double expected_improvement(const Posterior& posterior, double best) {
  const double deviation = std::sqrt(posterior.variance);
  const double excess = posterior.mean - best;
  if (deviation == 0) return std::max(excess, 0.0);
  const double z = excess / deviation;
  const double density = std::exp(-z * z / 2) / std::sqrt(2 * std::numbers::pi);
  const double below = std::erfc(-z / std::numbers::sqrt2) / 2;
  return deviation * (z * below + density);
}

Bayesian::Bayesian(Space space, BayesianOptions options) : space_(std::move(space)), options_(options) {
  check(space_);
  if (options_.initial == 0) options_.initial = std::max(5, 2 * static_cast<int>(space_.size()) + 2);
}

std::optional<Trial> Bayesian::ask() {
  const bool blind = asked_ < options_.initial || outcomes_.empty();
  const RandomKey key{options_.seed, Purpose::proposal, 0, static_cast<std::uint32_t>(asked_), 0};
  pending_.push_back({asked_++, blind ? random_values(space_, key) : proposal()});
  return pending_.back();
}

void Bayesian::tell(const Trial& trial, double value) {
  const auto found = std::find_if(pending_.begin(), pending_.end(),
                                  [&](const Trial& one) { return one.number == trial.number; });
  if (found == pending_.end()) throw std::invalid_argument("Bayesian: result for an unknown trial");
  outcomes_.push_back({*found, value});
  pending_.erase(found);
}

/// Moves each parameter with probability 1/2 by a normal step, whose standard deviation is 1/4, 1/16 or 1/64
/// of the range.
Values Bayesian::perturbed(const Values& center, std::uint32_t candidate) const {
  Values values = center;
  const double reach = std::pow(0.25, 1 + static_cast<double>(candidate % 3));
  RandomKey key{options_.seed, Purpose::candidate, candidate, static_cast<std::uint32_t>(asked_), 0};
  for (std::size_t i = 0; i < space_.size(); ++i, key.item += 2) {
    const auto [chance, word] = uniform_pair(key);
    if (chance < 0.5) continue;
    const bool choice = space_[i].kind == Parameter::Kind::choice;
    RandomKey step = key;
    ++step.item;
    const double moved = choice ? word : position_of(space_[i], values[i]) + reach * normal(step);
    values[i] = value_at(space_[i], std::clamp(moved, 0.0, 1.0));
  }
  return values;
}

Values Bayesian::proposal() const {
  auto values = standardized(finite_values(outcomes_));
  const auto best = std::max_element(values.begin(), values.end());
  const double target = *best;
  const Values center = outcomes_[static_cast<std::size_t>(best - values.begin())].trial.values;

  std::vector<std::vector<double>> points;
  std::vector<Values> taken;
  for (const Outcome& outcome : outcomes_) taken.push_back(outcome.trial.values);
  for (const Values& one : taken) points.push_back(features(space_, one));
  const GaussianHypers hypers = most_likely_hypers(options_.kernel, points, values, 0);
  for (const Trial& trial : pending_) {
    taken.push_back(trial.values);
    points.push_back(features(space_, trial.values));
    values.push_back(target);
  }
  const GaussianProcess process(hypers, std::move(points), std::move(values), 0);

  Values chosen;
  double most = -1;
  for (std::uint32_t i = 0; i < static_cast<std::uint32_t>(options_.candidates); ++i) {
    RandomKey key{options_.seed, Purpose::proposal, 1 + i, static_cast<std::uint32_t>(asked_), 0};
    Values candidate = i % 2 == 0 ? random_values(space_, key) : perturbed(center, i);
    const bool again = std::find(taken.begin(), taken.end(), candidate) != taken.end();
    const double improvement =
        again ? -0.5 : expected_improvement(process.at(features(space_, candidate)), target);
    if (improvement <= most) continue;
    most = improvement;
    chosen = std::move(candidate);
  }
  return chosen;
}

}  // namespace stepcast
