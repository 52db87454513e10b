#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "models/cost/memory.hpp"
#include "models/partition/spatial_partition.hpp"
#include "models/partition/token_division.hpp"
#include "platforms/platform.hpp"
#include "strategies/collectives/algorithm_choice.hpp"
#include "strategies/plan/pipeline_schedule.hpp"
#include "strategies/program/program.hpp"
#include "strategies/program/worker.hpp"

namespace stepcast {

class YamlMap;

/// A key that a scenario gives and that has no effect. It is accepted, because a sweep may need it at another
/// point, and the results name it.
struct IneffectiveKey {
  std::string key;  ///< "strategy.channels"
  std::string why;  ///< "with all_reduce: halving_doubling"
};
using IneffectiveKeys = std::vector<IneffectiveKey>;

/// "strategy.channels: has no effect with all_reduce: halving_doubling"
std::string to_string(const IneffectiveKey& one);

/// Adds those of `keys` that the mapping gives.
void note_ineffective(const YamlMap& map, const std::vector<std::string>& keys, const std::string& why,
                      IneffectiveKeys& found);

/// A communicator of a plan: its index in Plan::communicators.
using CommunicatorId = TypedId<struct CommunicatorTag>;

/// Equal groups of ranks that run collectives among themselves: one group of all workers, one for each node,
/// or one for each sample.
struct Communicator {
  std::vector<RankId> ranks;  ///< ranks of all groups, group after group
  int size = 1;               ///< ranks of one group; divides ranks.size()
  int ranks_per_node = 1;     ///< consecutive ranks of a group that share a node; 1 where nodes hold unequal
                              ///< numbers of them
  AllReduceChoice all_reduce;
  int streams = 1;              ///< collectives of one stream run one after the other
  int in_flight = 1;            ///< collectives at once, over all streams
  bool user_specified = false;  ///< the scenario's options set all_reduce, streams and in_flight

  int groups() const { return std::ssize(ranks) / size; }
};

/// A collective of the run, known before the run starts. Programs start it by its index in the plan.
struct Collective {
  enum class Kind { all_reduce, reduce_scatter, all_gather, broadcast, reduce, all_to_all, exchange };

  Kind kind{};
  CommunicatorId communicator{0};
  Buffer buffer;  ///< buffer of one rank. all_gather and reduce_scatter: the whole buffer; all_to_all: the
                  ///< matrix of all ranks' data for all ranks
  std::shared_ptr<const Schedule> schedule;  ///< kind exchange: transfers of one group (halos, flat master)
  /// The elements of its array, where others lie between them and buffer.elements is empty.
  std::vector<Slice> parts = {};
  bool by_group = false;  ///< group g works only on the share of the elements that rank g of a ring owns
                          ///< after a reduce-scatter
  int groups_of_share =
      1;  ///< with by_group: consecutive groups that work on the same share, of other arrays
  /// Activations, error signals and statistics: the layer of the model around whose passes the collective
  /// runs. Gradients and parameters of a pipeline: the first layer of the run of layers. -1: none.
  int layer = -1;
  bool fills_nics = false;  ///< all_to_all of DeepEP, whose kernels use the whole rate of the NICs
  /// Rank of a node that sums the buffer, with `inside_node: flat`.
  int root = 0;
  /// Time from the last rank's call to the start, during which the ranks go on computing. It stands for a
  /// library that checks for calls only now and then, or for work of the hosts. Only simulations use it.
  Seconds wait = {};
};

/// Names of the kinds, in the order of Collective::Kind.
const std::vector<std::string>& collective_kind_names();

/// The algorithms of all-reduces with `all_reduce: automatic`.
using AllReduceChoices = std::map<CollectiveId, AllReduceChoice>;

/// Equal workers, or one server, that run one program.
struct Role {
  std::string name;  ///< "worker", "server", "stage 2"
  RankId first_rank{0};
  int members = 1;
  int workload = 0;      ///< index in the plan; -1: none
  bool training = true;  ///< its steps count and noise acts on it; false: a server, which may wait forever
  std::function<Program(Worker&)> program;

  RankId rank(int member) const { return RankId(first_rank.value + member); }
  /// Index of a rank among the members; outside 0 .. members - 1 if the rank has another role.
  int member(RankId rank) const { return rank.value - first_rank.value; }
};

/// The division of a network among the ranks of a replica, for a runtime that computes with kernels.
struct ModelPartition {
  enum class Form {
    none,       ///< every rank has the whole network
    stages,     ///< role i has the layers `stages[i]`
    positions,  ///< ranks of a group of communicator 0 have parts of every sample: `spatial`
    blocks,     ///< ranks of a group of communicator 0 have parts of every layer: tensor_shard of `ways`
    filters,    ///< the same: filter_shard of `ways`
    slices,     ///< the same: machine_shard of `ways`
    machines,   ///< `ways` consecutive ranks share a replica as in `slices`, and exchange their parameters
                ///< with servers; ranks of one process compute it as one network
    group,      ///< `ways` consecutive ranks train a network together and sum its gradients with other
                ///< groups: only ranks of one process can compute it, as one network
    other,      ///< any other kind, which kernels cannot compute
  };

  Form form = Form::none;
  std::vector<LayerRange> stages;
  SpatialPartition spatial;
  int statistics_over = 1;       ///< ranks whose samples the statistics of batch norm cover
  std::int64_t micro_batch = 1;  ///< samples of a replica at once
  int micro_batches = 1;
  std::string simulated_only;  ///< reason why kernels cannot compute this; empty where they can
  int ways = 1;                ///< ranks that share a layer
  /// Consecutive ranks that share the experts of stages, and each have samples of their own.
  int expert_ways = 1;
  /// Stages that compute forward passes again: the actions of each stage. A forward pass precedes every
  /// backward pass.
  std::vector<std::vector<PipelineAction>> recomputed = {};
  bool sums_every_micro_batch = false;  ///< stages scatter the gradients of each micro-batch, not their sum
  TokenDivision tokens = {};            ///< of `stages`: how ranks of a stage divide the tokens of a sample
  bool shards_parameters = false;       ///< after a step only the owner of a parameter has its value (FSDP)

  /// Consecutive ranks of a stage with different parts of its layers, or of their experts.
  int parts() const { return std::max(ways, expert_ways); }
};

/// Numbers that the programs recorded or marked, by name, in the order of recording.
using Records = std::map<std::string, std::vector<double>>;

/// Figures for results.csv: (column, value).
using Figures = std::vector<std::pair<std::string, double>>;

/// A strategy applied to a scenario, before anything runs: which ranks take part, what they will send, what
/// each device holds. Plain data.
struct Plan {
  IdTable<RankId, int> endpoints;  ///< endpoint of the platform for each rank: devices, and hosts of servers
  std::vector<Workload> workloads;
  std::vector<Role> roles;
  std::vector<Communicator> communicators;
  std::vector<Collective> collectives;
  /// Pairs of roles (from, to) that send each other messages; asynchronous plans may leave it empty.
  std::vector<std::pair<RoleId, RoleId>> channels;
  bool assigns_work_by_message = false;  ///< messages between roles say how much work the receiver does

  int summed_gradients = 1;  ///< gradients of workers and micro-batches in one step of a worker's optimizer
  bool chooses_mini_batches = false;  ///< programs say which mini-batch of all a worker trains on next
  std::string no_arithmetic;  ///< option whose values are timed but not calculated; empty: all are calculated

  bool asynchronous = false;    ///< each worker has a pace of its own; every message is simulated
  bool common_steps = false;    ///< asynchronous workers share out one step after the other, as Sandblaster's
  double compute_slowdown = 1;  ///< factor on compute while a collective of the worker runs; >= 1
  double message_slowdown = 1;  ///< factor on a worker's compute while a message from or to it travels; >= 1
  double load_slowdown = 1;     ///< factor on a worker's compute while its input loads; >= 1
  bool load_data = false;       ///< input comes from the platform's storage
  ModelPartition partition;
  int steps = 1;    ///< of each training worker
  int devices = 1;  ///< devices in use, including those of servers
  int workers = 1;
  std::int64_t batch_per_worker = 1;  ///< samples per step of one replica
  std::int64_t samples_of_pass = 1;   ///< samples of one of its micro-batches
  double samples_a_step = 1;          ///< samples per step of all replicas (asynchronous: one step of each)
  bool compresses = false;            ///< gradients are compressed
  Memory memory;                      ///< memory of the fullest device
  bool fits = true;
  std::string why_not;  ///< reason why it does not fit; empty where it fits
  std::string trace_kind;
  std::vector<std::string> flags;    ///< doubts about the traces
  IneffectiveKeys ineffective_keys;  ///< keys of the scenario that have no effect
  std::string simulated_only;        ///< reason why it cannot run for real; empty where it can
  /// The strategy's own columns. @param seconds  of a step, median
  std::function<Figures(const Records& records, double seconds)> figures;
};

/// Adds a collective. @return its number
CollectiveId add(Plan& plan, Collective collective);
/// Adds a communicator. @return its number
CommunicatorId add(Plan& plan, Communicator communicator);

/// The communicator of a collective of the plan.
const Communicator& communicator_of(const Plan& plan, const Collective& collective);

/// The role of a rank, if it has one.
RoleId role_of(const Plan& plan, RankId rank);

/// True if the rank has a role that trains.
bool trains(const Plan& plan, RankId rank);

/// Pairs of ranks of which the first sends messages to the second, in ascending order. They come from the
/// plan's channels, member by member. An asynchronous plan without channels has a pair from every training
/// rank to every server and back.
std::vector<std::pair<RankId, RankId>> message_pairs(const Plan& plan);

/// Schedule of a collective of one group. @param choice  algorithm of an all-reduce, not `automatic`
std::shared_ptr<const Schedule> schedule_of(const Collective& collective, const AllReduceChoice& choice,
                                            const Group& group);

/// True if the forecast chooses the collective's algorithm: it is an all-reduce with `all_reduce: automatic`
/// over more than one rank.
bool has_automatic_algorithm(const Plan& plan, const Collective& collective);

/// Number of consecutive ranks on each node that `endpoints` use; 1 if the nodes hold unequal numbers of
/// ranks.
int even_ranks_per_node(const Platform& platform, const std::vector<int>& endpoints);

/// Groups of `size` ranks, with their ranks for each node.
/// @param ranks  indices into `endpoints`, group after group
Communicator communicator(const Platform& platform, const IdTable<RankId, int>& endpoints,
                          std::vector<RankId> ranks, int size);

/// 0, 1, ..., count - 1
std::vector<RankId> first_ranks(int count);

}  // namespace stepcast
