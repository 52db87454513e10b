#pragma once

#include <cstdint>
#include <vector>

#include "data/dataset.hpp"
#include "kernels/network/network.hpp"
#include "strategies/program/worker.hpp"

namespace stepcast {

/// The layers of one network that are trained against each other: a generator, which makes samples from
/// random numbers, and a discriminator, which tells them from real samples (a GAN).
///
/// A mini-batch of B samples is a batch of B for the generator and one of 2 B for the discriminator: first
/// the real samples, then the generated ones. Both networks descend at once, from the same parameters. The
/// discriminator's loss is the mean cross-entropy over all 2 B samples; the generator's is the mean of
/// -log D over its B samples.
/// Source: I. Goodfellow et al., "Generative adversarial nets", NIPS 2014, section 3 (loss of the generator
/// that does not saturate); both at once: L. Mescheder et al., "The numerics of GANs", NIPS 2017, section 2.
class Adversaries {
 public:
  struct Layers {
    std::size_t discriminator = 0, loss = 0;  ///< its first layer; the layer that is the loss
  };

  /// The form of the network, for NetworkOptions.
  /// @param discriminator  its first layer
  /// @param batch          samples of a mini-batch
  static PartOptions part(std::size_t discriminator, std::int64_t batch);

  /// @param network  made with `part`; it outlives this object
  /// @param seed     of the generator's random inputs
  Adversaries(Network& network, const Layers& layers, std::uint64_t seed, const Batches::Split& split);

  /// Draws the generator's inputs for mini-batch `number` of this worker. They depend on the sample alone, so
  /// N workers together draw what one worker with N times the batch draws.
  /// @param real  real samples, row-major; they outlive the forward pass
  void begin(std::int64_t number, const std::vector<float>& real);
  /// Runs a forward or backward pass of the layers.
  void run(Work pass, LayerRange layers);

 private:
  int border() const { return layers_.discriminator; }
  void join_samples();
  void hand_back_gradients();

  Network& network_;
  Layers layers_;
  std::uint64_t seed_;
  Batches::Split split_;
  const std::vector<float>* real_ = nullptr;
};

/// Normal random inputs of a generator, {samples, elements of one input}, row-major.
/// @param first  number of the first sample
std::vector<float> generator_inputs(std::uint64_t seed, std::int64_t first, std::int64_t samples,
                                    std::size_t elements);

/// The distance between two sets of samples, from 0 (equal distributions) to 1: the energy coefficient
/// H = (2 E|X - Y| - E|X - X'| - E|Y - Y'|) / (2 E|X - Y|) with Euclidean distances.
/// Source: G. Szekely, M. Rizzo, "Energy statistics: a class of statistics based on distances", J. Stat.
/// Plan. Inference 143 (2013).
/// @param one, other  samples of `elements` numbers each, one after the other; at least one of each
double energy_coefficient(const std::vector<float>& one, const std::vector<float>& other,
                          std::size_t elements);

/// The same between the generated and the real samples of low energy: those whose sum is below the median of
/// the real ones'. 1 if no generated sample is.
double low_energy_coefficient(const std::vector<float>& generated, const std::vector<float>& real,
                              std::size_t elements);

}  // namespace stepcast
