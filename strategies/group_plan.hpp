#pragma once

#include <optional>
#include <string>
#include <vector>

#include "models/shard.hpp"
#include "strategies/sharded.hpp"

namespace stepcast {

/// Keys of `strategy:` that all forms of sharing know.
const std::vector<std::string>& group_keys();

struct GroupOptions {
  TrainingOptions training;
  CommunicationOptions communication;  ///< of gradients
  Bytes bucket{26214400};
  bool overlap = true;       ///< sums of gradients beside the backward pass
  bool halo_overlap = true;  ///< exchanges beside the work that does not need them
  bool recompute = false;    ///< of every stretch the forward pass again, before its backward pass
  int micro_batches = 1;
  Seconds exchange_overhead;
  std::optional<YamlMap> given;  ///< all keys
};

GroupOptions read_group_options(const YamlMap& map);

/// A plan in the making: `ways` devices share a replica, consecutive in rank order.
struct GroupPlan {
  Plan plan;
  GroupOptions options;
  int ways = 1;
  std::int64_t micro_batch = 1;  ///< samples of a replica at once
  int group = 0;                 ///< communicators: the devices of a replica,
  int replicas = 1;              ///< those in the same place of each replica,
  int all = 2;                   ///< and all
  Bytes element;                 ///< of an activation or gradient on the wire
  ShardedModel sharded;
  std::vector<std::int64_t> batch;  ///< of each layer, on one device, at once
  std::vector<LayerCalls> calls;    ///< of each layer
  double input_share = 1;           ///< of a replica's input that each device loads
  MemoryOptions memory;
  NetworkSharing sharing{NetworkSharing::Form::other, {}, {}, 1, 1, 1, "layers shared in this way"};
  std::optional<YamlValue> cut_trace;  ///< name of a trace at the shapes of the part
};

/// Communicators of groups of `ways` devices. @throws InputError at `where` if they do not divide the workers
GroupPlan begin_groups(const Setting& setting, const GroupOptions& options, int ways, const YamlValue& where);

/// The samples that each of `shares` replicas gets.
void set_samples(const Setting& setting, int shares, GroupPlan& groups);

/// -1 where there is nobody to talk to.
int add_collective(Plan& plan, Collective::Kind kind, int communicator, Bytes size);

/// Turns the exchanges of these layers of `groups.sharded` into collectives of the group, and calls of them.
void add_exchanges(LayerRange layers, GroupPlan& groups);

/// Sums of the gradients of these layers over a communicator, those layers whose `summed_in_group` is as
/// asked.
std::vector<Bucket> add_sums(LayerRange layers, bool summed_in_group, int communicator, GroupPlan& groups);

/// Of each layer: sums that can start when the backward pass has left it.
std::vector<std::vector<int>> sums_by_layer(const std::vector<Bucket>& buckets, std::size_t layers);

/// Layer times of the device's part. @throws InputError if the named trace does not fit
Trace part_times(const Setting& setting, const GroupPlan& groups);

/// What the plan says of times, memory and input, once the workload is known.
void set_verdict(const Setting& setting, const GroupPlan& groups, const Trace& times, const Memory& memory,
                 Plan& plan);

/// Halos of the layers of a cut sample, and what packing them takes of the device.
void add_halos(const Setting& setting, const SampleCut& cut, GroupPlan& groups);

/// The way from parts of all samples of the group to whole samples of each device, and of the error signals
/// back: all-to-all before the first whole layer.
void add_dealing(const Model& model, const SampleCut& cut, GroupPlan& groups);

enum class Statistics { group, local, all };  ///< over the devices of a sample; of each device; over all

/// Batch norm over several devices: an all-reduce after the layer, forward and backward.
void add_statistics(const Model& model, Statistics over, GroupPlan& groups);

/// Notes which keys have no effect on the plan, whose collectives are complete.
/// @param instead  as note_idle_communication has it
void note_idle_group(const GroupPlan& groups, const std::string& instead, Plan& plan);

/// Layer times, gradient sums, the role, memory's verdict and the columns: the rest of the plan.
/// @param in_memory  what memory is counted of: the device's part, or the model where memory options split it
Plan finish(const Setting& setting, GroupPlan groups, const Model& in_memory);

/// Why kernels cannot compute the forward pass of a network with dropout again.
constexpr const char* kDropsOthers = "recomputation of dropout, which would drop others the second time";
bool has_dropout(const Model& model);

/// Throws InputError at `where` unless `problem` is empty.
void refuse_if(const std::string& problem, const YamlValue& where);

}  // namespace stepcast
