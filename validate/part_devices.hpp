#pragma once

#include <filesystem>
#include <map>
#include <memory>

#include "validate/cut_device.hpp"
#include "validate/rank_part.hpp"
#include "validate/tensor_device.hpp"

namespace stepcast {

/// Makes what computes for a rank that has a part of every sample or of every layer, in runs that are timed
/// on synthetic data, and keeps the networks.
class PartDevices {
 public:
  /// @param captured  goes on where it lies in memory
  PartDevices(Backend& backend, int rank, CapturedParts captured = {});

  /// Null: the rank has no such part of this experiment.
  /// @param trace  its file: points with one trace train one network
  std::unique_ptr<RankDevice> device(const Experiment& experiment, const std::filesystem::path& trace);

 private:
  std::unique_ptr<RankDevice> with_part_of_samples(const Experiment& experiment,
                                                   const std::filesystem::path& trace);
  std::unique_ptr<RankDevice> with_part_of_layers(const Experiment& experiment,
                                                  const std::filesystem::path& trace);

  Backend& backend_;
  int rank_;
  std::map<std::filesystem::path, CutNetwork> cuts_;
  std::map<std::filesystem::path, SharedNetwork> shared_;
};

}  // namespace stepcast
