#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "models/cost/device.hpp"
#include "models/partition/layer_partition.hpp"
#include "models/partition/spatial_partition.hpp"
#include "models/partition/spatial_shard.hpp"
#include "strategies/collectives/schedule.hpp"
#include "strategies/model_parallel/layer_segments.hpp"
#include "strategies/options/strategy.hpp"
#include "strategies/plan/buckets.hpp"

namespace stepcast {

/// Keys of all strategies in which groups of devices share a replica, except `recompute`.
const Keys& group_keys();
/// The key `part_trace`, of strategies whose parts can be captured.
Key part_trace_key();

struct GroupOptions {
  TrainingOptions training;
  CommunicationOptions communication;  ///< options of the sums of gradients
  BucketSize bucket;
  bool overlap = true;       ///< sums of gradients run during the backward pass
  bool halo_overlap = true;  ///< exchanges run during work that does not need their data
  int micro_batches = 1;
  Seconds exchange_overhead;  ///< device time of every exchange in a pass
};

GroupOptions read_group_options(const YamlMap& map);

/// A plan under construction: `ways` devices, consecutive in rank order, share a replica.
struct GroupPlan {
  Plan plan;
  GroupOptions options;
  int ways = 1;
  std::int64_t micro_batch = 1;          ///< samples of a replica at once
  CommunicatorId group{0};               ///< communicator of the devices of a replica
  CommunicatorId context{0}, expert{0};  ///< those of other axes of a mesh
  CommunicatorId replicas{0};            ///< those of the devices with the same part of the same layers
  Bytes element;                         ///< size of an activation or gradient in a message
  ShardedModel sharded;
  std::vector<std::int64_t> batch;  ///< samples of each layer on one device at once
  std::vector<LayerCalls> calls;    ///< collectives around the passes of each layer
  Model kept;                       ///< network whose memory is counted
  MemoryOptions memory;
  std::optional<YamlValue> captured_trace;  ///< name of a trace that was captured at the shapes of the part
};

/// @throws InputError at `where` if groups of `devices` do not make up the workers
void check_groups(const Setting& setting, std::int64_t devices, const YamlValue& where);

/// Begins a plan of groups of `ways` devices, with the communicator of each group.
/// @throws InputError at `where` if `ways` does not divide the workers
GroupPlan begin_groups(const Setting& setting, const GroupOptions& options, std::int64_t ways,
                       const YamlValue& where);

/// Sets the samples of each of `shares` replicas.
void set_samples(const Setting& setting, int shares, GroupPlan& groups);

/// @returns the new collective; none if the group has one rank, or there is nothing to send
CollectiveId add_collective(Plan& plan, Collective::Kind kind, CommunicatorId communicator, Bytes size);

/// Adds the exchanges of these layers of `groups.sharded` as collectives of the group, and the calls of them.
void add_exchanges(LayerRange layers, GroupPlan& groups);

/// Sizes of an element and of a bucket of gradients in messages.
struct GradientSizes {
  Bytes element;
  BucketSize bucket;
};

/// Adds the sums of the gradients of these layers over a communicator.
/// @param summed_in_group  selects the layers whose ShardedModel::summed_in_group has this value
std::vector<Bucket> add_sums(LayerRange layers, bool summed_in_group, CommunicatorId communicator,
                             const GradientSizes& sizes, GroupPlan& groups);

/// Sums that can start after the backward pass of a layer, for each layer.
std::vector<std::vector<CollectiveId>> sums_by_layer(const std::vector<Bucket>& buckets, std::size_t layers);

/// Layer times of the device's part. @throws InputError if the named trace does not fit
Trace part_times(const Setting& setting, const GroupPlan& groups);

/// The origin of layer times from part_times.
TimesSource source_of_part(const GroupPlan& groups, const Trace& times);

/// Calls finish_plan with the times and the memory of the fullest device.
void finish_group_plan(const Setting& setting, const GroupPlan& groups, const Trace& times,
                       const Memory& memory, Plan& plan);

/// Devices that share the positions of a sample, and the filters that each holds.
struct PositionGroup {
  CommunicatorId devices;
  LocalFilters filters{};
};

/// Adds the halo exchanges of these layers of a partitioned sample, with the device time of packing.
void add_halos(const Setting& setting, const SpatialPartition& partition, LayerRange layers,
               const PositionGroup& group, GroupPlan& groups);

/// @param over  ranks whose samples the statistics of batch norm cover
/// @returns reason why batch norm in a group of `ways` differs from that of one rank; empty if it does not
std::string statistics_problem(const Model& model, int over, int ways);

/// Throws InputError at `where` unless `problem` is empty.
void refuse_if(const std::string& problem, const YamlValue& where);

/// The halo exchange of one layer among the devices that share a sample.
struct HaloExchange {
  std::shared_ptr<const Schedule> schedule;  ///< null: no device needs anything
  double elements = 0;                       ///< elements of the schedule's whole buffer, for one sample
  double busiest = 0;                        ///< largest number of elements that one device receives
};

/// The exchange has a phase for each dimension, the last dimension first. A phase has the messages of all
/// devices; those of one direction all have the size of the largest.
/// @param received  messages to each device of the grid, from device_halos
HaloExchange halo_exchange(const Parts& parts, const std::vector<std::vector<HaloMessage>>& received);
/// The exchange that sends every message of another back, in the opposite order: gradients of halos.
HaloExchange returned(const HaloExchange& halo);

/// Time of a device to pack the halos that it sends into one buffer, or to unpack those that it received.
/// Each byte is read and written once.
Seconds packing_seconds(const Device& device, Bytes halo);

/// The division of the network among `machines` ranks (`model_parallel`) and a replica of `batch` samples.
ModelPartition machine_partition(const Model& model, int machines, const GroupOptions& options,
                                 std::int64_t batch);

}  // namespace stepcast
