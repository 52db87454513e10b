#pragma once

#include <functional>
#include <optional>
#include <string>

#include "core/yaml.hpp"
#include "strategies/compression/gradient_compression.hpp"
#include "strategies/options/strategy.hpp"
#include "strategies/parameter_server/server.hpp"
#include "strategies/plan/setting.hpp"

namespace stepcast {

/// Options of every strategy whose workers exchange with servers.
struct ServerOptions {
  enum class Place { own_host, own_device, colocated };

  int shards = 1;
  Place place = Place::own_host;
  bool by_array = false;                 ///< every array travels in a message of its own
  bool serial = false;                   ///< the server serves one client after the other
  std::optional<Seconds> apply_time;     ///< time of an update of the whole model
  std::optional<YamlValue> apply_trace;  ///< a trace whose update gives the time of a server's update
  double apply_arrays = 5;               ///< arrays that an update reads and writes
  int validate_every = 0;                ///< updates between two validations; 0: none
  Seconds validation;
  std::optional<Bytes> exchanged;  ///< size of all parameters in messages
  std::optional<int> arrays;       ///< number of arrays, for `messages: array`
  int sub_masters = 0;
  int sub_master_every = 1;      ///< updates between two exchanges of a sub-master with its server
  int group_size = 1;            ///< ranks of one worker, each with its own samples
  int machines_per_replica = 1;  ///< devices that share the network of one worker
  Seconds exchange_overhead;     ///< device time of every exchange between these devices
  TrainingOptions training;
  CommunicationOptions communication;  ///< inside groups
  /// The keys as written, for error messages.
  std::optional<YamlValue> shards_at, sub_masters_at, group_at, machines_at, place_at;
  std::optional<YamlValue>
      part_trace;  ///< name of a trace that was captured at the shapes of a machine's part
};

const Keys& server_keys();  ///< with training_keys() and communication_keys()

/// @param apply_arrays  default of the key
ServerOptions read_server_options(const YamlMap& map, double apply_arrays);

/// Notes which of server_keys() have no effect on the plan.
/// @param sums  whether a server adds up the updates of a round
void note_ineffective_server_options(const YamlMap& map, const ServerOptions& options, bool sums, Plan& plan);

/// Input of the program of a worker, or of one of the ranks that make up a worker, from the plan.
struct ServerClient {
  Servers servers;     ///< empty: a rank that follows another one of its group
  LocalWork quantize;  ///< work to compress an update
  MiniBatch batch;
  Seconds array = {};  ///< time to read or write one array of the parameters
};

/// The strategy's own part of a plan with servers.
struct ServerStrategy {
  ServerRules rules;  ///< the plan sets clients and take
  int backup_workers = 0;
  bool answer_first = false;  ///< a server answers an update before it applies it
  bool array_rounds = false;  ///< each array has a round of its own (Server::apply_slice)
  bool whole_arrays = false;  ///< with array_rounds: each array lies whole on one server
  double held_arrays =
      0;  ///< arrays of all parameters that a worker's device holds besides those of training
  double updates_a_step = 1;        ///< updates that a worker sends in a step
  GradientCompression compression;  ///< compression of updates; parameters are never compressed
  /// The server's arithmetic on an update, which lies in `update` (synchronous: the sum, in `gradients`).
  /// @param summed  gradients in the update
  std::function<void(Arrays&, const Slice& elements, int summed)> apply;
  /// A sub-master's arithmetic on its server's answer; see Server::pull.
  LocalWork pull;
  std::function<std::function<Program(Worker&)>(ServerClient)> program;  ///< makes a worker's program
};

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

/// The option whose values are timed but not calculated (Plan::no_arithmetic); empty: none.
std::string no_arithmetic(const ServerOptions& options);

/// The part of the parameters that shard `index` holds. @param role  of the shard
Shard share_of(const Exchanged& exchanged, const ServerOptions& options, int index, RoleId role);

/// Devices that the shards and sub-masters of a mapping `strategy:` take besides the workers'.
int server_devices(const YamlValue& options);

/// Steps after which workers that started together meet their servers independently of each other: 100, or
/// ten exchanges of each worker if these are more. @param options  the mapping `strategy`
int usual_server_steps(const YamlValue& options);

/// Takes the measured time of a server's arithmetic where the scenario says nothing about it.
void use_measured_update(const Setting& setting, const char* arithmetic, ServerOptions& options);

/// Time of a server to read or write one array of the whole model. It comes from `apply_time` or
/// `apply_trace`; else from the workers' update, if the server runs on such a device or the update was
/// measured on a processor; else from the bandwidth of the host's memory.
/// @param trace_kind  kind of the workers' times (TimesSource::kind)
Seconds array_seconds(const Setting& setting, const ServerOptions& options, const Workload& whole,
                      const std::string& trace_kind, const Exchanged& exchanged);

/// Time of a server's arithmetic on `arrays` arrays of its part. @param array  from array_seconds
Seconds server_work(const ServerOptions& options, Seconds array, double arrays);

/// Rank of a worker that exchanges with a shard (with a sub-master: shard 0).
RankId rank_for(const Tree& tree, const ServerOptions& options, int worker, int shard);

/// Shards, or the sub-master, with which a rank exchanges; none for a rank that follows another rank.
Servers servers_of(const Tree& tree, const ServerOptions& options, const Exchanged& exchanged, RankId rank);

}  // namespace stepcast
