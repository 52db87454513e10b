#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "models/cut.hpp"
#include "models/memory.hpp"
#include "strategies/collectives/choice.hpp"
#include "strategies/idle_keys.hpp"
#include "strategies/message.hpp"
#include "strategies/pipeline_turns.hpp"
#include "strategies/worker.hpp"

namespace stepcast {

/// Equal groups of ranks that talk among themselves, group after group: one group of all workers, or one a
/// node, or one a sample.
struct Communicator {
  std::vector<int> ranks;
  int size = 1;            ///< ranks of a group; divides ranks.size()
  int ranks_per_node = 1;  ///< consecutive ranks of a group that share a node, where that is even; else 1
  AllReduceChoice all_reduce;
  int streams = 1;        ///< collectives of one stream run one after the other
  int in_flight = 1;      ///< collectives at once, over all streams
  bool as_asked = false;  ///< the last three are what the scenario asks for

  int groups() const { return static_cast<int>(ranks.size()) / size; }
};

/// A collective of the run, known before it starts. Programs call it by its number in the plan.
struct Collective {
  enum class Kind { all_reduce, reduce_scatter, all_gather, broadcast, reduce, all_to_all, exchange };

  Kind kind{};
  int communicator = 0;
  Buffer buffer;  ///< of one rank; all_gather and reduce_scatter: the whole; all_to_all: what all ranks hold
                  ///< for all, the matrix
  std::shared_ptr<const Schedule> schedule;  ///< kind exchange: of one group (halos, a flat master ...)
  bool by_group = false;  ///< every group has a part of the elements to itself: that which rank g of a ring
                          ///< ends a reduce-scatter with
  /// Activations, errors, statistics: of the model's layer around whose passes it is called. A pipeline's
  /// gradients and parameters: of the run of layers that this is one of.
  int layer = -1;
};

/// Equal workers, or one server, that run one program.
struct Role {
  std::string name;  ///< "worker", "server", "stage 2"
  int first_rank = 0;
  int members = 1;
  int workload = 0;      ///< of the plan's; -1: none
  bool training = true;  ///< its steps count, and noise acts on it; false: a server, which may wait for ever
  std::function<Program(Worker&)> program;
};

/// How ranks share a replica's network, where each has not all of it: what a world with kernels builds.
struct NetworkSharing {
  enum class Form {
    none,       ///< every rank has the whole network
    stages,     ///< role i has the layers `stages[i]`
    positions,  ///< ranks of communicator 0's groups have parts of every sample: `cut`
    blocks,     ///< they have parts of every layer: tensor_part, `ways` of them
    other,      ///< of any other kind: no kernels
  };

  Form form = Form::none;
  std::vector<LayerRange> stages;
  SampleCut cut;
  int statistics_over = 1;       ///< ranks over which batch norm counts
  std::int64_t micro_batch = 1;  ///< samples of a replica at once
  int micro_batches = 1;
  std::string simulated_only;  ///< why kernels cannot do this, in words; empty where they can
  int ways = 1;                ///< of shared layers: ranks of a group
  /// Stages that compute forward passes again: the turns of each. Before a backward pass comes its forward
  /// one.
  std::vector<std::vector<Turn>> recomputed = {};
  bool sums_every_micro_batch = false;  ///< of stages: each one's gradients are scattered, not their sum
};

/// Numbers that the programs recorded or marked, by name, in the order in which that happened.
using Records = std::map<std::string, std::vector<double>>;

/// Figures for results.csv: (column, value).
using Figures = std::vector<std::pair<std::string, double>>;

/// What a strategy makes of a scenario before anything runs: who takes part, what they will send, what each
/// device holds. Plain data.
struct Plan {
  std::vector<int> endpoints;  ///< of the platform, for each rank: devices, and hosts of servers
  std::vector<Workload> workloads;
  std::vector<Role> roles;
  std::vector<Communicator> communicators;
  std::vector<Collective> collectives;
  /// Pairs of roles (from, to) that send each other messages; asynchronous plans need not list them.
  std::vector<std::pair<int, int>> channels;
  bool deals_work = false;  ///< messages between roles say how much each has to do

  int summed_gradients = 1;   ///< that a worker's optimizer finds in one: of other workers and micro-batches
  std::string no_arithmetic;  ///< the key of what is not calculated for real, only timed; empty: all is

  bool asynchronous = false;    ///< workers take steps each at its own pace; every message is simulated
  double compute_slowdown = 1;  ///< of a worker's compute while a collective of its runs; >= 1
  bool load_data = false;       ///< input comes from the platform's storage
  NetworkSharing sharing;
  int devices = 1;  ///< that are paid for, servers' own ones included
  int workers = 1;
  std::int64_t batch_per_worker = 1;  ///< samples a step of one replica
  double samples_a_step = 1;          ///< of all replicas together (asynchronous: if each takes one step)
  Memory memory;                      ///< of the fullest device
  bool fits = true;
  std::string why_not;  ///< in words, where it does not fit
  std::string trace_kind;
  std::vector<std::string> flags;  ///< doubts that the traces carry
  IdleKeys idle_keys;              ///< given, and without effect
  std::string simulated_only;      ///< why it cannot be run for real, where nothing else says so
  /// The strategy's own columns. @param seconds  of a step, median
  std::function<Figures(const Records& records, double seconds)> figures;
};

}  // namespace stepcast
