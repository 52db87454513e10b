#pragma once

#include "strategies/parameter_server/server_options.hpp"
#include "strategies/plan/setting.hpp"

namespace stepcast {

/// Numbers of workers, servers and sub-masters.
struct Tree {
  int ranks = 1;  ///< ranks of one worker
  int workers = 1;
  int shards = 1, sub_masters = 0;

  int first_shard() const { return ranks * workers; }
  int first_sub_master() const { return first_shard() + shards; }
};

/// @throws InputError for groups that do not divide the workers, and for impossible numbers
Tree tree_of(const Setting& setting, const ServerOptions& options);

/// Parameters in messages.
struct Exchanged {
  Bytes size;
  int arrays = 1;           ///< number of arrays
  double update_share = 1;  ///< size of an update over the size of the parameters
  Codec codec = {};         ///< compression of an update
  Slice elements;           ///< elements of the model; empty if the scenario gives another size
};

Exchanged exchanged_of(const Setting& setting, const ServerOptions& options);

/// The part of the parameters that shard `index` holds. @param role  of the shard
Shard share_of(const Exchanged& exchanged, const ServerOptions& options, int index, int role);

/// Time of a server to read or write one array of the whole model. It comes from `apply_time` or
/// `apply_trace`; else from the workers' update, if the server runs on such a device or the update was
/// measured on a processor; else from the bandwidth of the host's memory.
/// @param trace_kind  kind of the workers' times (TimesSource::kind)
Seconds array_seconds(const Setting& setting, const ServerOptions& options, const Workload& whole,
                      const std::string& trace_kind, const Exchanged& exchanged);

/// Time of a server's arithmetic on `arrays` arrays of its part. @param array  from array_seconds
Seconds server_work(const ServerOptions& options, Seconds array, double arrays);

/// Rank of a worker that exchanges with a shard (with a sub-master: shard 0).
int rank_for(const Tree& tree, const ServerOptions& options, int worker, int shard);

/// Shards, or the sub-master, with which a rank exchanges; none for a rank that follows another rank.
Servers servers_of(const Tree& tree, const ServerOptions& options, const Exchanged& exchanged, int rank);

}  // namespace stepcast
