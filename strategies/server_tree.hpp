#pragma once

#include "strategies/server_options.hpp"
#include "strategies/strategy.hpp"

namespace stepcast {

/// Sizes of the tree of workers and servers.
struct Tree {
  int ranks = 1;  ///< of a worker
  int workers = 1;
  int shards = 1, sub_masters = 0;

  int first_shard() const { return ranks * workers; }
  int first_sub_master() const { return first_shard() + shards; }
};

/// @throws InputError for groups that do not divide the workers, and trees that cannot be
Tree tree_of(const Setting& setting, const ServerOptions& options);

/// Parameters as they travel.
struct Exchanged {
  Bytes size;
  int arrays = 1;
  double update_share = 1;  ///< size of an update, as a share of that
  Codec codec = {};         ///< of an update
  Slice elements;           ///< of the model; none where another size is given
};

Exchanged exchanged_of(const Setting& setting, const ServerOptions& options);

/// What shard `index` of them, which has this role, holds.
Shard share_of(const Exchanged& exchanged, const ServerOptions& options, int index, int role);

/// Seconds in which a server goes through one array of the whole model: as `apply_time` or `apply_trace`
/// says; else by the workers' own update where the server is such a device, or where that was measured on a
/// processor, as a host has; else by the bandwidth of the host's memory.
/// @param trace_kind  of the workers' times, as in results
Seconds array_seconds(const Setting& setting, const ServerOptions& options, const Workload& whole,
                      const std::string& trace_kind, const Exchanged& exchanged);

/// Arithmetic of a server on so many arrays of its share.
Seconds server_work(const ServerOptions& options, Seconds array, double arrays);

/// Rank of a worker that exchanges with a shard (0: with a sub-master).
int rank_for(const Tree& tree, const ServerOptions& options, int worker, int shard);

/// Shards, or the sub-master, with which a rank exchanges; none for one that follows another rank.
Servers servers_of(const Tree& tree, const ServerOptions& options, const Exchanged& exchanged, int rank);

}  // namespace stepcast
