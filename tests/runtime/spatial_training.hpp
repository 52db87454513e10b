#pragma once

#include <memory>
#include <string>
#include <vector>

#include "kernels/network/backend.hpp"
#include "kernels/onednn/backend.hpp"

namespace stepcast::test {

/// Options of a strategy `spatial`.
struct PartitionCase {
  std::string options;
  int ranks, ways;
  std::int64_t batch;         ///< of a replica
  bool halo_overlap = false;  ///< the interior is computed while halos travel
};

/// The backend of a rank, and how collectives on device memory are executed.
struct ShardMaker {
  std::unique_ptr<Backend> (*make)() = make_onednn_backend;
  bool by_backend = false;  ///< by a collective backend; false: staged through the host
};

/// Parameters and loss after some steps.
struct ShardTraining {
  std::vector<std::vector<float>> parameters;  ///< of rank 0
  std::vector<std::vector<float>> last;        ///< of the last rank
  double loss = 0;
};

/// Trains on ranks that are threads; the loss is summed over the ranks of all replicas.
/// @param labels  shape of the loss's map if the samples are partitioned up to the loss
ShardTraining trained_in_shards(const std::string& model, const PartitionCase& c, const Shape& labels,
                                const ShardMaker& place = {});
/// Checks that the result equals that of one rank with whole samples on oneDNN, up to rounding. With other
/// backends only the trainable parameters are compared.
void check_trains_as_whole(const std::string& model, const PartitionCase& c, const Shape& labels,
                           const ShardMaker& place = {});

/// Strides, batch norm, pools that cross the partition boundary and ones that do not, 1 x 1 filters; labels
/// of {4, 7, 6}.
extern const std::string kMesh;
/// Max pools whose windows cross the partition boundary, with and without overlap, each with two readers,
/// after zeros of a relu, among which the first counts.
std::string pools(const std::string& input);
/// One class for each sample; the layers after the dense layer have whole samples.
extern const std::string kClasses;

struct PartitionTrial {
  std::string model;
  PartitionCase partition;
  Shape labels;
};
/// One trial of each kind: strips and quarters, batch norm over replicas, pools, classes.
std::vector<PartitionTrial> partition_trials();

}  // namespace stepcast::test
