#pragma once

#include <memory>
#include <string>
#include <vector>

#include "kernels/backend.hpp"

namespace stepcast::test {

/// A strategy `spatial` with these options.
struct CutCase {
  std::string options;
  int ranks, ways;
  std::int64_t batch;  ///< of a replica
};

/// What computes for a rank, and who carries what lies in memory of its device.
struct CutPlace {
  std::unique_ptr<Backend> (*make)() = make_onednn_backend;
  bool carried = false;  ///< by somebody who reads and writes there; else through the host
};

/// Parameters and loss after some steps.
struct CutTrained {
  std::vector<std::vector<float>> parameters;  ///< of rank 0
  std::vector<std::vector<float>> last;        ///< of the last rank
  double loss = 0;
};

/// Trains for real on ranks that are threads; the loss is summed over the ranks of all replicas.
/// @param labels  map of the loss where samples are cut to the end
CutTrained trained_cut(const std::string& model, const CutCase& c, const Shape& labels,
                       const CutPlace& place = {});
/// Checks that it comes to what one rank with whole samples does on oneDNN, to rounding; of other backends
/// the trained parameters.
void check_trains_as_uncut(const std::string& model, const CutCase& c, const Shape& labels,
                           const CutPlace& place = {});

/// Strides, batch norm, pools that cross the cut and ones that do not, 1 x 1 filters; labels of {4, 7, 6}.
extern const std::string kMesh;
/// Max pools whose windows cross the cut, with and without overlap, each with two readers, after zeros of a
/// relu, among which the first counts.
std::string pools(const std::string& input);
/// A class a sample: what follows the dense layer has whole samples.
extern const std::string kClasses;

struct CutTrial {
  std::string model;
  CutCase cut;
  Shape labels;
};
/// One of each sort: strips and quarters, batch norm over replicas, pools, classes.
std::vector<CutTrial> cut_trials();

}  // namespace stepcast::test
