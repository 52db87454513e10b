#pragma once

#include "strategies/arithmetic/energy_matching.hpp"
#include "strategies/client.hpp"
#include "strategies/strategy.hpp"

namespace stepcast {

/// Asynchronous elastic averaging: every so often a worker exchanges its parameters x with the center's y,
/// and both move towards each other: x -= a (x - y), y += a (x - y).
struct ElasticAveraging {
  int steps = 1;
  int period = 1;              ///< tau: mini-batches between exchanges
  double elastic_force = 0.9;  ///< a
  LocalWork pull;              ///< the worker's own move
  Servers servers;
  MiniBatch batch;
};

/// x -= a (x - y): with y in `center`.
Arithmetic elastic_pull_arithmetic(double force);

/// Source: S. Zhang, A. Choromanska, Y. LeCun, "Deep learning with elastic averaging SGD", NIPS 2015,
/// algorithm 1.
Program elastic_averaging(Worker& worker, const ElasticAveraging& options);

/// `strategy: {kind: elastic_averaging}`
Plan read_elastic_averaging(const YamlValue& value, const Setting& setting);

/// Gradient energy matching: a worker reads the center when its gradients are ready, scales its update with
/// what it read, and sends it.
struct GradientEnergyMatching {
  int steps = 1;
  int period = 1;   ///< mini-batches between updates
  LocalWork match;  ///< works out the update and takes it
  Servers servers;
  MiniBatch batch;
};

/// The update that `match` works out from the gradients gathered in `update`, into `gradients`, and the
/// worker's own step from the center.
Arithmetic energy_matching_arithmetic(const EnergyMatching& options);

/// Source: J. Hermans, G. Louppe, "Gradient energy matching for distributed asynchronous gradient descent",
/// arXiv:1805.08469; order of messages: the NNLO package, nnlo/mpi/process.py, MPIWorker.do_gem_sequence.
Program gradient_energy_matching(Worker& worker, const GradientEnergyMatching& options);

/// `strategy: {kind: gradient_energy_matching}`
Plan read_gradient_energy_matching(const YamlValue& value, const Setting& setting);

}  // namespace stepcast
