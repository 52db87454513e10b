#pragma once

#include <cstddef>
#include <span>

namespace stepcast {

/// Gradient energy matching: a worker of asynchronous SGD scales its update, element by element, so that the
/// center moves no faster than sequential SGD with momentum (the proxy) would, times `kappa`.
///
/// With g the gradient, r the learning rate, m the momentum, p the proxy's velocity, c the center received
/// now and c0 the one received before:
///
///   u = -r g;  p = m p + u;  s = (kappa |p| - |c - c0|) / |u + e|, into [0, largest];  update = s u
///
/// so that |c - c0| + |update| = kappa |p| where s is not cut. The update is added to the center.
///
/// Source: J. Hermans, G. Louppe, "Gradient energy matching for distributed asynchronous gradient descent",
/// arXiv:1805.08469; details (`largest`, `epsilon`, the order of receiving and updating) from the authors'
/// program, github.com/montefiore-institute/gradient-energy-matching. The paper's text was not at hand. kappa
/// and momentum as NNLO's driver defaults (github.com/vlimant/NNLO).
struct EnergyMatching {
  double learning_rate = 0.01;
  double momentum = 0.9;
  double kappa = 2;
  double largest = 5;      ///< scale at most
  double epsilon = 1e-12;  ///< against a gradient of 0
};

/// What a worker keeps: arrays of the model's length.
struct EnergyMatchingState {
  std::span<float> proxy;  ///< p; before the first update zeros
  std::span<float>
      center;  ///< c0, the center that was received last; before the first the initial parameters
};

/// @param gradient  g, at the center received before
/// @param center    c, received after the gradient was computed
/// @param update    out: what is sent, to be added to the center
/// @throws std::invalid_argument if lengths differ
void match_energy(const EnergyMatching& options, std::span<const float> gradient,
                  std::span<const float> center, const EnergyMatchingState& state, std::span<float> update);

}  // namespace stepcast
