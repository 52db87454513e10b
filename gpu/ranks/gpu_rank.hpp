#pragma once

#include <exception>
#include <functional>
#include <string>
#include <vector>

#include "kernels/network/backend.hpp"
#include "runtime/ranks/cluster.hpp"
#include "runtime/scenario_points/validation_plan.hpp"
#include "runtime/transport/transport.hpp"
#include "scenarios/reader/library.hpp"
#include "validate/launch/real_run_options.hpp"
#include "validate/measure/link_results.hpp"

namespace stepcast {

/// Options of one rank of a run on GPUs.
struct RankOptions {
  int rank = 0, ranks = 2;
  std::string store, folder, control;
  double timeout = 30;        ///< longest wait for other ranks [s]
  GpuRanks gpus;              ///< `device` is the GPU of rank 0
  bool measure_only = false;  ///< end when traces and links are measured
  ValidationOptions validation;
};

/// Sets what CUDA and NCCL read from the environment, unless the user has set it. Call it before CUDA is
/// used.
/// @param path  what carries collectives and messages: nccl, host or auto
void set_rank_environment(const std::string& path);

/// Writes the error to FOLDER/rank-N.error, from which the process that watches all ranks reports it once. A
/// file that is there stays: the first error is the cause of later ones.
void write_rank_error(const RankOptions& options, const std::exception& error);

/// Runs one rank: captures traces and measures the links between GPUs, unless earlier ranks did
/// (measured_before), waits for the stage of the runs, and runs every point `repeats` times. Rank 0 writes
/// platform.yaml, the traces and samples.jsonl.
/// @throws InputError, RankLost, and exceptions of the kernels
void run_gpu_rank(const RankOptions& options);

/// Captures traces of all networks that a validation's points train, and of this rank's part of partitioned
/// networks. All ranks capture at the same time, so that ranks that share a GPU share it as in training. Rank
/// 0 writes the traces.
void capture_on_gpus(const RankContext& run, const RankOptions& options, const GpuOptions& gpu,
                     const Validation& validation, Library& library);

/// Times of messages between the ranks' GPUs, from all-reduces: a ring all-reduce of S bytes over P ranks is
/// a sequence of 2 (P - 1) messages of S / P bytes. All ranks call this; only rank 0 gets a result.
/// @param sum  all-reduces this number of floats over all ranks, in memory of the GPUs
std::vector<MessageTime> message_times_of(Transport& transport, std::int64_t max_elements,
                                          const std::function<void(std::int64_t elements)>& sum);

/// Calls a function that all-reduces `elements` floats in the host's memory, with the copies before and after
/// it.
using AroundSum = std::function<void(std::size_t elements, const std::function<void()>& sum)>;
/// Times of messages of a ring all-reduce through shared memory.
/// @param host_values  the host's memory that is all-reduced
std::vector<MessageTime> ring_times(Transport& transport, float* host_values, std::int64_t max_elements,
                                    const AroundSum& around);

}  // namespace stepcast
