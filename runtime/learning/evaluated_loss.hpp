#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "report/results/results.hpp"

namespace stepcast {

/// Loss and accuracy of a training on test data: a line of learning.jsonl.
struct EvaluatedLoss {
  std::string point = {};
  std::string strategy = {};
  int ranks = 0;                         ///< servers included; 0: the line does not say
  std::int64_t step = 0;                 ///< mini-batches of a worker until then
  std::int64_t mini_batches_a_step = 1;  ///< of its program
  double samples = 0;                    ///< of all workers until then
  double seconds = 0;
  double loss = 0;  ///< not finite: the training has diverged
  std::optional<double> accuracy = {};
  std::optional<double> loss_low_energy = {};
  std::int64_t seed = 0;
  std::optional<double> predicted_seconds = {};  ///< when the same mini-batch ends in the forecast
};

/// The rows of `learning` typed. @param file  name for errors
/// @throws InputError with the line of a missing or bad column
std::vector<EvaluatedLoss> evaluations_of(const Results& learning, const std::string& file);

Row to_row(const EvaluatedLoss& one);

}  // namespace stepcast
