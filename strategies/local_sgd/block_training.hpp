#pragma once

#include <vector>

#include "strategies/arithmetic/model_updates.hpp"
#include "strategies/program/worker.hpp"

namespace stepcast {

/// Assigns `total` mini-batches so that all workers end at about the same time: in proportion to their speed,
/// rounded by largest remainders, at least one for each worker.
///
/// @param seconds  time of each worker for a mini-batch; > 0
/// @param total    at least the number of workers
/// @throws std::invalid_argument
std::vector<int> balanced_shares(const std::vector<double>& seconds, int total);

/// Options of blocks of local SGD.
struct BlockTraining {
  int blocks = 1;
  int mini_batches = 1;  ///< mini-batches of a replica in a block (its split of the block)
  BlockFilter filter;
  int blocks_without_momentum = 0;  ///< first blocks, whose filter has h = 0
  int prefetch = 1;                 ///< splits loaded ahead; 0: the replica waits for each load
  Seconds step_overhead;            ///< time of every mini-batch outside the layers
  double imbalance = 0;             ///< delay of the slowest replica, as a fraction of the time of a split
  Seconds aggregation_overhead;     ///< time of each block besides its transfers and its filter
  bool balanced = false;  ///< the master assigns mini-batches by the workers' speed in the previous block
};

/// The options with what the plan adds to them.
struct BlockRun {
  BlockTraining options;
  int replicas = 1;
  Bytes split;                           ///< input of a block, read from storage
  std::vector<CollectiveId> sum_models;  ///< collectives before the filter, one after the other
  std::vector<CollectiveId> send_model;  ///< collectives after the filter, one after the other
  LocalWork filter;                      ///< work of the master, or of every replica
  LocalWork first_filter;                ///< the same without momentum
  LocalWork quantize, restore;           ///< work on a compressed update, before and after `sum_models`
  LocalWork validation;         ///< a replica's share of a validation, or its average over the blocks
  double block_samples = 0;     ///< samples of a block of all replicas
  double validation_every = 0;  ///< samples trained between two validations; 0: every block takes its share
  Seconds split_seconds;        ///< time of the layers for a split, without noise
};

/// Blocks of local SGD: model averaging, BMUF and DiLoCo, which differ in the filter only. N replicas start
/// block t from the same model W_g(t-1). In every block:
///
///   1. replica i trains its split of the block by local SGD from W_g(t-1), which gives W_i
///   2. M = (W_1 + ... + W_N) / N
///   3. filter: G = M - W_g(t-1);  D(t) = h D(t-1) + z G;  W(t) = W(t-1) + D(t)
///      W_g(t) = W(t) in the classical form, W(t) + h D(t) in the Nesterov form, M for model averaging
///   4. all replicas continue from W_g(t)
///
/// Sources: K. Chen, Q. Huo, "Scalable training of deep learning machines by incremental block training with
/// intra-block parallel optimization and blockwise model-update filtering", ICASSP 2016; A. Douillard et al.,
/// "DiLoCo: distributed low-communication training of language models", arXiv:2311.08105.
/// @param role  role of the worker; 0 is the master. Used where the master balances the load
Program block_training(Worker& worker, const BlockRun& run, RoleId role);

/// Step 2 on arrays: divides the sum of the replicas' models, in `parameters`, by their number.
Arithmetic average_arithmetic(int replicas);
/// Steps 2 and 3 on arrays: makes `parameters`, the sum of the replicas' models, W_g(t). `center` holds
/// W_g(t-1) and becomes W_g(t); `model` and `change` hold W and D.
Arithmetic filter_arithmetic(const BlockFilter& filter, int replicas);

/// Validations that become due in a block (counted from 0), which covers `block_samples`.
int validations_after(const BlockRun& run, int block);

}  // namespace stepcast
