#include "strategies/plan/run_conditions.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <stdexcept>

namespace stepcast {
namespace {

/// Lognormal number of mean 1 from a standard normal number.
double lognormal(double sigma, double number) {
  return std::exp(sigma * number - sigma * sigma / 2);
}

std::uint32_t item_of(int layer, Work pass) {
  return 1 + 3 * static_cast<std::uint32_t>(layer) + static_cast<std::uint32_t>(pass);
}

/// Index of the measured step that a worker replays. It is one of the worker's own rank, because one core may
/// be slower than another for minutes. Workers of different ranks replay the same moment.
int sample_of(const MeasuredSteps& measured, RandomKey key, std::uint32_t worker) {
  const auto ranks = static_cast<std::uint32_t>(measured.ranks);
  const std::size_t each = measured.count / ranks;
  key.worker = worker / ranks;
  return static_cast<int>(worker % ranks * each + uniform_index(key, each));
}

}  // namespace

double Draw::layer_factor(int layer, Work pass) const {
  RandomKey own = key;
  own.item = item_of(layer, pass);
  return lognormal(layer_sigma, normal(own));
}

void layer_factors(const Draw& draw, Work pass, std::span<const int> layers, std::span<double> factors) {
  std::array<std::uint32_t, kNormalBlock> items{};
  std::ranges::transform(layers, items.begin(), [pass](int layer) { return item_of(layer, pass); });
  normal_numbers(draw.key, std::span(items).first(layers.size()), factors);
  for (double& factor : factors) factor = lognormal(draw.layer_sigma, factor);
}

Draw draw(const Noise& noise, std::uint64_t seed, std::uint32_t worker, std::uint32_t step,
          const MeasuredSteps& measured) {
  Draw drawn;
  const RandomKey key{seed, Purpose::jitter, worker, step, 0};
  if (noise.jitter == Noise::Jitter::trace && measured.count > 0)
    drawn.sample = sample_of(measured, key, worker);
  if (noise.jitter == Noise::Jitter::lognormal) drawn.factor = lognormal(noise.sigma, normal(key));
  if (noise.jitter == Noise::Jitter::layers) {
    drawn.layer_sigma = noise.sigma;
    drawn.key = key;
  }
  if (noise.imbalance > 0)
    drawn.factor *= lognormal(noise.imbalance, normal({seed, Purpose::imbalance, worker, step, 0}));
  if (noise.straggler_share > 0 &&
      uniform({seed, Purpose::straggler, worker, 0, 0}) < noise.straggler_share) {
    drawn.factor *= noise.straggler_factor;
  }
  if (const auto slow = noise.stragglers.find(worker); slow != noise.stragglers.end())
    drawn.factor *= slow->second;
  return drawn;
}

const Words<Fidelity>& fidelity_words() {
  static const Words<Fidelity> words{{"automatic", Fidelity::automatic},
                                     {"message", Fidelity::message},
                                     {"fluid", Fidelity::fluid},
                                     {"coupled", Fidelity::coupled}};
  return words;
}

const Words<LinkSharing>& link_sharing_words() {
  static const Words<LinkSharing> words{{"automatic", LinkSharing::automatic},
                                        {"max_min", LinkSharing::max_min},
                                        {"simgrid", LinkSharing::simgrid}};
  return words;
}

namespace {

/// Mean step of one worker [s], from the end of its first step to the end of its last step before `until` (at
/// least to that of its second).
double mean_step(const std::vector<double>& ends, double until) {
  if (ends.size() == 1) return ends.front();
  const auto before = std::upper_bound(ends.begin(), ends.end(), until) - ends.begin();
  const auto last = std::max<std::ptrdiff_t>(before - 1, 1);
  return (ends[static_cast<std::size_t>(last)] - ends.front()) / static_cast<double>(last);
}

}  // namespace

double start_seconds(const Plan& plan, const Noise& noise, RankId rank) {
  if (!plan.asynchronous || noise.start_spread == 0) return 0;
  int before = 0, training = 0;
  bool trains = false;
  for (const Role& role : plan.roles) {
    if (!role.training) continue;
    training += role.members;
    const int member = role.member(rank);
    before += std::clamp(member, 0, role.members);
    trains = trains || (member >= 0 && member < role.members);
  }
  return trains ? noise.start_spread * before / training : 0;
}

double own_pace_step_seconds(const std::vector<std::vector<double>>& ends) {
  double until =
      std::numeric_limits<double>::infinity();  // the end of the first worker that ends all its steps
  for (const auto& worker : ends) {
    if (!worker.empty()) until = std::min(until, worker.back());
  }
  double rate = 0, workers = 0;
  for (const auto& worker : ends) {
    if (worker.empty()) continue;
    rate += 1 / mean_step(worker, until);
    ++workers;
  }
  if (workers == 0) throw std::invalid_argument("no worker ended a step");
  return workers / rate;
}

double common_step_seconds(const std::vector<std::vector<double>>& ends) {
  std::vector<double> first;  // end of each step for the first worker that learns of it
  for (const auto& worker : ends) {
    first.resize(std::max(first.size(), worker.size()), std::numeric_limits<double>::infinity());
    for (std::size_t step = 0; step < worker.size(); ++step)
      first[step] = std::min(first[step], worker[step]);
  }
  if (first.empty()) throw std::invalid_argument("no worker ended a step");
  if (first.size() == 1) return first.front();
  return (first.back() - first.front()) / static_cast<double>(first.size() - 1);
}

double asynchronous_step_seconds(const Plan& plan, const std::vector<std::vector<double>>& ends) {
  return plan.common_steps ? common_step_seconds(ends) : own_pace_step_seconds(ends);
}

}  // namespace stepcast
