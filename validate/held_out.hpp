#pragma once

#include <functional>
#include <memory>

#include "data/batches.hpp"
#include "kernels/network.hpp"
#include "validate/checkpoint.hpp"
#include "validate/sample_form.hpp"

namespace stepcast {

/// How good parameters are on data that nobody trains on.
struct Score {
  double loss = 0;
  double accuracy = 0;  ///< share of the classes that are right; NaN where targets are no classes
};

/// Scores parameters of a model: nothing is dropped; batch norm takes the statistics of a test batch.
class HeldOut {
 public:
  /// @param samples  of `data`, from the first on
  HeldOut(Backend& backend, const Model& model, const LearningTask& task, const Dataset& data,
          std::int64_t samples);

  /// @param beat  called after every batch
  Score score(const Parameters& parameters, const std::function<void()>& beat);

 private:
  double right_share(const Batches::Batch& batch);

  LearningTask task_;
  std::int64_t batches_;
  Network network_;
  Batches data_;
};

}  // namespace stepcast
