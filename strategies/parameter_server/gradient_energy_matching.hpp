#pragma once

#include "strategies/options/strategy.hpp"
#include "strategies/parameter_server/server_client.hpp"

namespace stepcast {

/// Options of gradient energy matching.
struct GradientEnergyMatching {
  int steps = 1;
  int period = 1;  ///< mini-batches between updates
  /// Whole arrays that the numpy operations of NNLO's class GEM read and write (nnlo/train/optimizer.py):
  /// update 3 + 2, moment 2 + 3, center's moment 3 + 2, energies 4 + 2 + 4 + 8, scaled update 3, own
  /// parameters 3.
  double local_arrays = 39;
};

/// The options with what the plan adds to them.
struct EnergyMatchingRun {
  GradientEnergyMatching options;
  LocalWork match;  ///< steps 3 and 4
  Servers servers;
  MiniBatch batch;
  Seconds array;  ///< time to read or write one array of the parameters
};

/// Gradient energy matching (GEM): asynchronous SGD in which a worker scales its update by the distance that
/// the center moved since the worker read it last. Each worker repeats, without waiting for the others:
///
///   1. g = sum of the gradients of `period` mini-batches, with a local step after each
///   2. reads the center's parameters c
///   3. update = s u with u = -learning rate x g. The scale s makes |c - c0| + |update| = kappa |p|, where c0
///      is the center that the worker read before, and p is the velocity of SGD with momentum
///      (arithmetic/model_updates.hpp)
///   4. continues from c + update
///   5. sends the update to the center, which adds it: c = c + update
///
/// Source: J. Hermans, G. Louppe, "Gradient energy matching for distributed asynchronous gradient descent",
/// arXiv:1805.08469; order of messages: the NNLO package, nnlo/mpi/process.py, MPIWorker.do_gem_sequence.
Program gradient_energy_matching(Worker& worker, const EnergyMatchingRun& run);

/// Steps 3 and 4: g is in `update`, c in `center`; the update goes into `gradients`.
void match_and_continue(Arrays& arrays);
/// Step 5 of the center: c, in `parameters`, plus the update, in `update`.
void add_to_center(Arrays& arrays, const Slice& elements, int summed);

Strategy gradient_energy_matching_strategy();

}  // namespace stepcast
