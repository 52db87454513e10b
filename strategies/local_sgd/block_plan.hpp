#pragma once

#include <vector>

#include "strategies/compression/gradient_compression.hpp"
#include "strategies/local_sgd/block_training.hpp"
#include "strategies/options/strategy.hpp"
#include "strategies/plan/plan.hpp"

namespace stepcast {

/// The algorithm that averages the replicas' models.
enum class Aggregation {
  tree,        ///< binomial reduce to the master, filter there, binomial broadcast
  flat,        ///< the master receives every model, filters, and sends every replica the result
  all_reduce,  ///< every replica sums by all-reduce and filters by itself
};
const Words<Aggregation>& aggregation_words();

struct BlockValidation {
  double samples = 0;         ///< samples of the validation set
  double every = 0;           ///< training samples between two validations; 0: no validation
  double compute_factor = 1;  ///< multiplies the layers' forward times
  bool spread = true;  ///< true: every block takes its share; false: the whole validation follows the block
                       ///< in which it becomes due
};

/// Arrays that are read and written when the sum of the models is divided: the parameters; where a filter
/// follows, also D, W and W_g(t-1).
constexpr double kAverageArrays = 2, kFilterArrays = 8;

/// Input of block_plan in addition to the workload, whose buckets are those of the sums inside a replica.
struct BlockSetup {
  BlockTraining training;
  bool filters = true;  ///< false: plain averaging
  Aggregation aggregation{};
  CommunicationOptions communication;  ///< options of sums inside a replica, and of Aggregation::all_reduce
  int workers_per_replica = 1;
  GradientCompression compression;  ///< compression of the updates of blocks
  Bytes parameters;                 ///< size of the model
  Seconds array_seconds;            ///< time of the filter to read or write an array of all parameters
  BlockValidation validation;
  double batch = 1;          ///< samples per mini-batch of one worker
  double epoch_samples = 0;  ///< samples of one pass over the data; 0: not given
};

/// The plan, with the columns of block training: block_seconds and its parts, `overhead` (time of a block
/// over that of the same mini-batches on one worker, minus 1), and minutes of a pass over `epoch_samples`
/// where they are given.
/// @throws std::invalid_argument if workers_per_replica does not divide the workers
Plan block_plan(const Platform& platform, std::vector<int> endpoints, Workload workload, BlockSetup setup);

// Blocks of local SGD (local_sgd/block_training.hpp). The strategies differ in the filter only.

Strategy model_averaging_strategy();
Strategy bmuf_strategy();
Strategy diloco_strategy();

}  // namespace stepcast
