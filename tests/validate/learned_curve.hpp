#pragma once

#include <string>
#include <vector>

#include "kernels/backend.hpp"
#include "report/results.hpp"
#include "scenarios/experiment.hpp"
#include "validate/checkpoint.hpp"

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
  std::vector<Row> rows;
  Parameters last;
};

using MakeBackend = std::unique_ptr<Backend> (*)();

/// What the point's ranks learn for real, with mini-batches of 8 samples a replica.
Curve learned(const std::string& strategy, int ranks, const std::string& model,
              const LearningOptions& learning, MakeBackend make = make_onednn_backend);
/// To rounding.
void check_same(const Curve& one, const Curve& other);

extern const std::string kImages;
/// Convolutions that shrink their maps.
extern const std::string kDigits;
/// A label a pixel, in a flattened map; its 13 rows are cut unevenly.
extern const std::string kPixels;
extern const std::string kBlocks;

}  // namespace stepcast::test
