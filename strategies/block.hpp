#pragma once

#include <vector>

#include "strategies/arithmetic/block_momentum.hpp"
#include "strategies/compression.hpp"
#include "strategies/strategy.hpp"
#include "strategies/training_options.hpp"
#include "strategies/worker.hpp"

namespace stepcast {

/// How the replicas' models become one.
enum class Aggregation {
  tree,        ///< binomial reduce to the master, filter there, binomial broadcast
  flat,        ///< the master receives every model, filters, and sends every replica the result
  all_reduce,  ///< every replica sums by all-reduce and filters for itself
};
const std::vector<std::string>& aggregation_names();  ///< in the order of Aggregation

/// Blocks of local SGD: every replica trains a split of a block by itself, then the models are averaged,
/// filtered and broadcast. Model averaging, block momentum (BMUF) and DiLoCo differ in the filter alone.
struct BlockTraining {
  int blocks = 1;
  int mini_batches = 1;  ///< of a replica in a block: a split
  BlockFilter filter;
  int prefetch = 1;              ///< splits loaded ahead; 0: the load is waited for
  Seconds step_overhead;         ///< of every mini-batch, outside the layers
  double imbalance = 0;          ///< share of a split's time by which the last of several replicas is late
  Seconds aggregation_overhead;  ///< of a block: what is neither transfer nor filter
  bool balanced = false;         ///< the master deals mini-batches out by the speed of the block before

  // Filled in by the plan.
  Bytes split;                  ///< read from storage for a block
  std::vector<int> gather;      ///< collectives before the filter, one after the other
  std::vector<int> spread;      ///< and after it
  LocalWork filter_work;        ///< of the master, or of everyone
  LocalWork quantize, restore;  ///< of an update that is compressed: before and after `gather`
  LocalWork validation_work;    ///< of a replica: its share of a validation, or of what a block pays of it
  double block_samples = 0;     ///< of all replicas together
  double validation_every = 0;  ///< samples trained between two validations; 0: every block pays its share
  Seconds split_seconds;        ///< of the layers alone, without noise
  int replicas = 1;
};

/// Sum of so many replicas' parameters, in `parameters`, to their mean; and to what the filter makes of it,
/// which is also kept as the `center` that the next block starts from.
Arithmetic average_arithmetic(int replicas);
Arithmetic filter_arithmetic(const BlockFilter& filter, int replicas);

/// Validations that fall due by the end of a block (from 0), having not been due before it.
int validations_after(const BlockTraining& options, int block);

/// Source: K. Chen, Q. Huo, "Scalable training of deep learning machines by incremental block training with
/// intra-block parallel optimization and blockwise model-update filtering", ICASSP 2016; A. Douillard et al.,
/// "DiLoCo: distributed low-communication training of language models", arXiv:2311.08105.
/// @param role  of the worker; the master's is 0. Used where the master balances the load
Program block_training(Worker& worker, const BlockTraining& options, int role);

struct BlockValidation {
  double samples = 0, every = 0;  ///< of the validation set; of training between two validations
  double compute_factor = 1;      ///< on the layers' forward times
  bool spread = true;  ///< every block pays its share; false: whole, after the block that reaches it
};

/// What block_plan makes a plan of, beside the workload (whose buckets are those of the sums inside a
/// replica).
struct BlockSetup {
  BlockTraining training;
  bool filters = true;  ///< false: plain averaging
  Aggregation aggregation{};
  CommunicationOptions communication;  ///< of sums inside a replica, and of Aggregation::all_reduce
  int workers_per_replica = 1;
  GradientCompression compression;  ///< of blocks' updates
  Bytes parameters;                 ///< of the model
  Seconds array_seconds;            ///< the filter's time for an array of all parameters, read or written
  BlockValidation validation;
  double batch = 1;          ///< samples a mini-batch of one worker
  double epoch_samples = 0;  ///< of a sweep; 0: not given
};

/// The options' times, from the layers'.
void add_block_work(const Workload& workload, BlockSetup& setup);

/// @throws std::invalid_argument if workers_per_replica does not divide the workers
Plan block_plan(const Platform& platform, std::vector<int> endpoints, Workload workload, BlockSetup setup);

/// `strategy: {kind: model_averaging}`, `bmuf` and `diloco`
Plan read_model_averaging(const YamlValue& value, const Setting& setting);
Plan read_bmuf(const YamlValue& value, const Setting& setting);
Plan read_diloco(const YamlValue& value, const Setting& setting);

}  // namespace stepcast
