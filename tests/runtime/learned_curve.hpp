#pragma once

#include <string>
#include <vector>

#include "kernels/network/backend.hpp"
#include "kernels/onednn/backend.hpp"
#include "report/results/results.hpp"
#include "runtime/learning/evaluated_loss.hpp"
#include "runtime/memory/parameters.hpp"
#include "scenarios/experiment/experiment.hpp"

namespace stepcast::test {

constexpr int kLearningSteps = 6;

struct LearningCase {
  std::string strategy;
  int ranks, replicas;
  const std::string* model;
  DataOptions::Kind data;
};

LearningOptions options_of(const LearningCase& c);

struct Curve {
  std::vector<EvaluatedLoss> evaluations;
  Parameters last;
};

using MakeBackend = std::unique_ptr<Backend> (*)();

/// The result of learning on real ranks, with mini-batches of 8 samples for each replica.
Curve learned(const std::string& strategy, int ranks, const std::string& model,
              const LearningOptions& learning, MakeBackend make = make_onednn_backend);
/// Checks that two results are equal up to rounding.
void check_same(const Curve& one, const Curve& other);

extern const std::string kImages;
/// Convolutions that shrink their maps.
extern const std::string kDigits;
/// One label for each pixel, in a flattened map; its 13 rows are partitioned unevenly.
extern const std::string kPixels;
extern const std::string kBlocks;

}  // namespace stepcast::test
