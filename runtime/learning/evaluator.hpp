#pragma once

#include <functional>
#include <memory>

#include "data/dataset.hpp"
#include "kernels/network/network.hpp"
#include "models/network/model.hpp"
#include "runtime/memory/parameters.hpp"

namespace stepcast {

/// The loss layer of a model, and the form of the samples that it learns from.
struct LearningTask {
  std::size_t loss_layer = 0;
  SampleForm form;
};

/// @throws InputError for a model without a loss, or with several
LearningTask learning_task(const Model& model);

/// Quality of parameters on test data, which no rank trains on.
struct Score {
  double loss = 0;
  double accuracy = 0;  ///< share of correctly predicted classes; NaN if the targets are not classes
};

/// Evaluates parameters of a model, without dropout; batch norm uses the statistics of a test batch.
class Evaluator {
 public:
  /// @param samples  how many samples of `data` are used, from the first on
  Evaluator(Backend& backend, const Model& model, const LearningTask& task, const Dataset& data,
            std::int64_t samples);

  /// @param on_progress  called after every batch
  Score score(const Parameters& parameters, const std::function<void()>& on_progress);

 private:
  double accuracy(const Batches::Batch& batch);

  LearningTask task_;
  std::int64_t batches_;
  Network network_;
  Batches data_;
};

}  // namespace stepcast
