#include "runtime/learning/adversaries.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "runtime/devices/rank_device.hpp"

namespace stepcast {

PartOptions Adversaries::part(std::size_t discriminator, std::int64_t batch) {
  PartOptions part;
  part.whole_from = discriminator;
  part.whole_batch = 2 * batch;
  return part;
}

Adversaries::Adversaries(Network& network, const Layers& layers, std::uint64_t seed,
                         const Batches::Split& split)
    : network_(network), layers_(layers), seed_(seed), split_(split) {
  std::vector<float> labels(2 * split.batch, 0.0F);
  std::fill_n(labels.begin(), split.batch, 1.0F);
  network_.kernel(layers_.loss).targets()->write(labels);
}

void Adversaries::begin(std::int64_t number, const std::vector<float>& real) {
  const std::int64_t first = (number * split_.workers + split_.worker) * split_.batch;
  const std::size_t elements = sample_numbers(network_.model().input);
  network_.input().write(generator_inputs(seed_, first, split_.batch, elements));
  real_ = &real;
}

void Adversaries::run(Work pass, LayerRange layers) {
  const LayerRange generator{layers.first, std::min(layers.last, border())};
  const LayerRange discriminator{std::max(layers.first, border()), layers.last};
  const bool crosses = layers.first <= border() && border() < layers.last;
  const auto run_part = [&](LayerRange part) {
    if (!part.empty()) run_layers(network_, pass, part);
  };
  run_part(pass == Work::forward ? generator : discriminator);
  if (crosses) pass == Work::forward ? join_samples() : hand_back_gradients();
  run_part(pass == Work::forward ? discriminator : generator);
}

void Adversaries::join_samples() {
  std::vector<float> both = *real_;
  const std::vector<float> generated = network_.kernel(layers_.discriminator - 1).output().read();
  both.insert(both.end(), generated.begin(), generated.end());
  network_.boundary_input(border() - 1)->write(both);
}

/// The discriminator's pass gives each generated sample the gradient of its own loss, s / (2 B) at a logit x,
/// s = sigmoid(x). The generator's loss has the gradient -(1 - s) / B there. All layers work on each sample
/// alone, so a factor for each sample, -2 (1 - s) / s = -2 exp(-x), turns one into the other.
void Adversaries::hand_back_gradients() {
  Tensor& to = *network_.boundary_output_gradient(layers_.discriminator - 1);
  std::vector<float> all(2 * to.elements());
  network_.write_input_gradient(border() - 1, all);
  std::vector<float> generated(all.begin() + to.elements(), all.end());
  const Layer& loss = network_.model().layers[layers_.loss];
  const std::vector<float> logits = network_.kernel(loss.inputs.front()).output().read();
  constexpr double kLargest = 80;  // where sigmoid(-x) is still a normal float
  const std::size_t samples = split_.batch;
  const std::size_t each = generated.size() / samples;
  for (std::size_t i = 0; i < samples; ++i) {
    const double factor = -2 * std::exp(std::min(-double{logits[samples + i]}, kLargest));
    for (std::size_t k = i * each; k < (i + 1) * each; ++k) generated[k] = factor * generated[k];
  }
  to.write(generated);
}

std::vector<float> generator_inputs(std::uint64_t seed, std::int64_t first, std::int64_t samples,
                                    std::size_t elements) {
  std::vector<float> inputs;
  for (std::int64_t sample = first; sample < first + samples; ++sample) {
    const Draws draws(seed, sample, kInputs);
    for (std::uint32_t n = 0; n < elements; ++n) inputs.push_back(draws.normal(n));
  }
  return inputs;
}

namespace {

double distance(const float* one, const float* other, std::size_t elements) {
  double square = 0;
  for (std::size_t k = 0; k < elements; ++k) {
    const double difference = double{one[k]} - other[k];
    square += difference * difference;
  }
  return std::sqrt(square);
}

/// The mean Euclidean distance of all pairs of a sample of `one` and a sample of `other`.
double mean_distance(const std::vector<float>& one, const std::vector<float>& other, std::size_t elements) {
  double sum = 0;
  for (std::size_t i = 0; i < one.size(); i += elements) {
    for (std::size_t j = 0; j < other.size(); j += elements) sum += distance(&one[i], &other[j], elements);
  }
  const std::size_t pairs = (one.size() / elements) * (other.size() / elements);
  return sum / pairs;
}

/// `mean_distance` of a set and itself. Distances are symmetric, so each pair is computed once.
double mean_distance_within(const std::vector<float>& set, std::size_t elements) {
  double sum = 0;
  for (std::size_t i = 0; i < set.size(); i += elements) {
    for (std::size_t j = i + elements; j < set.size(); j += elements)
      sum += distance(&set[i], &set[j], elements);
  }
  const std::size_t samples = set.size() / elements;
  return 2 * sum / (samples * samples);
}

}  // namespace

double energy_coefficient(const std::vector<float>& one, const std::vector<float>& other,
                          std::size_t elements) {
  const double between = mean_distance(one, other, elements);
  if (between == 0) return 0;
  const double within = mean_distance_within(one, elements) + mean_distance_within(other, elements);
  return 1 - within / (2 * between);
}

namespace {

/// The energy of each sample.
std::vector<double> energies(const std::vector<float>& samples, std::size_t elements) {
  std::vector<double> sums;
  for (std::size_t i = 0; i < samples.size(); i += elements)
    sums.push_back(std::accumulate(&samples[i], &samples[i] + elements, 0.0));
  return sums;
}

/// The samples with less energy than `limit`.
std::vector<float> samples_below(double limit, const std::vector<float>& samples, std::size_t elements) {
  const std::vector<double> all = energies(samples, elements);
  std::vector<float> below;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i] < limit) below.insert(below.end(), &samples[i * elements], &samples[i * elements] + elements);
  }
  return below;
}

}  // namespace

double low_energy_coefficient(const std::vector<float>& generated, const std::vector<float>& real,
                              std::size_t elements) {
  std::vector<double> all = energies(real, elements);
  const auto middle = all.begin() + (all.size() / 2);
  std::ranges::nth_element(all, middle);
  const std::vector<float> made = samples_below(*middle, generated, elements);
  const std::vector<float> meant = samples_below(*middle, real, elements);
  return made.empty() || meant.empty() ? 1 : energy_coefficient(made, meant, elements);
}

}  // namespace stepcast
