#pragma once

#include <deque>
#include <memory>

#include "validate/cut_device.hpp"
#include "validate/tensor_device.hpp"

namespace stepcast {

/// Makes what computes for a rank that has a part of every sample or of every layer, in runs that are timed
/// on synthetic data, and keeps the networks.
class PartDevices {
 public:
  PartDevices(Backend& backend, int rank) : backend_(backend), rank_(rank) {}

  /// Null: the rank has no such part of this experiment.
  std::unique_ptr<RankDevice> device(const Experiment& experiment);

 private:
  std::unique_ptr<RankDevice> with_part_of_samples(const Experiment& experiment);
  std::unique_ptr<RankDevice> with_part_of_layers(const Experiment& experiment);

  Backend& backend_;
  int rank_;
  std::deque<CutNetwork> cuts_;
  std::deque<SharedNetwork> shared_;
};

}  // namespace stepcast
