#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/yaml.hpp"
#include "strategies/compression/gradient_compression.hpp"
#include "strategies/options/communication_options.hpp"
#include "strategies/options/training_options.hpp"
#include "strategies/parameter_server/server.hpp"

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
  TrainingOptions training;
  CommunicationOptions communication;  ///< inside groups
  /// The keys as written, for error messages.
  std::optional<YamlValue> shards_at, sub_masters_at, group_at, machines_at, place_at;
};

const StrategyKeys& server_keys();  ///< with training_keys() and communication_keys()

/// @param apply_arrays  default of the key
ServerOptions read_server_options(const YamlMap& map, double apply_arrays);

/// `period` of strategies that exchange every so many mini-batches.
int read_period(const YamlMap& map);

/// Notes which of server_keys() have no effect on the plan.
/// @param sums  whether a server adds up the updates of a round
void note_idle_server_options(const YamlMap& map, const ServerOptions& options, bool sums, Plan& plan);

/// Input of the program of a worker, or of one of the ranks that make up a worker, from the plan.
struct ServerClient {
  Servers servers;     ///< empty: a rank that follows another one of its group
  LocalWork quantize;  ///< work to compress an update
  MiniBatch batch;
};

/// The strategy's own part of a plan with servers.
struct ServerStrategy {
  ServerRules rules;  ///< the plan sets clients and take
  int backup_workers = 0;
  bool answer_first = false;        ///< a server answers an update before it applies it
  double held_arrays = 0;           ///< arrays of all parameters that a worker's device holds beside training
  double updates_a_step = 1;        ///< updates that a worker sends in a step
  GradientCompression compression;  ///< compression of updates; parameters are never compressed
  /// The server's arithmetic on an update, which lies in `update` (synchronous: the sum, in `gradients`).
  /// @param summed  gradients in the update
  std::function<void(Arrays&, const Slice& elements, int summed)> apply;
  /// A sub-master's arithmetic on its server's answer; see Server::pull.
  Arithmetic pull;
  std::function<std::function<Program(Worker&)>(ServerClient)> program;  ///< makes a worker's program
};

}  // namespace stepcast
