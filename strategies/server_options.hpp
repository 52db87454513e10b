#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/yaml.hpp"
#include "strategies/serve.hpp"
#include "strategies/training_options.hpp"

namespace stepcast {

/// Keys of `strategy:` of every strategy with workers that exchange with servers.
struct ServerOptions {
  enum class Place { own_host, own_device, colocated };

  int shards = 1;
  Place place = Place::own_host;
  bool by_array = false;  ///< a message for each array
  bool serial = false;
  std::optional<Seconds> apply_time;     ///< of an update of the whole model
  std::optional<YamlValue> apply_trace;  ///< a trace whose update, of five arrays, is a server's
  double apply_arrays = 5;  ///< whole arrays that an update reads and writes, where there is no time
  int validate_every = 0;
  Seconds validation;
  std::optional<Bytes> exchanged;  ///< size of all parameters as they travel
  std::optional<int> arrays;       ///< how many they are
  int sub_masters = 0;
  int sub_master_every = 1;
  int group_size = 1;            ///< ranks that make up one worker, each with samples of its own
  int machines_per_replica = 1;  ///< devices that share the model of one worker
  TrainingOptions training;
  CommunicationOptions communication;  ///< inside groups
  std::optional<YamlValue> shards_at, sub_masters_at, group_at, machines_at, place_at;
};

const std::vector<std::string>& server_keys();  ///< with those of training and communication

/// @param apply_arrays  of this strategy's update, the default
ServerOptions read_server_options(const YamlMap& map, double apply_arrays);

/// Notes which of their keys have no effect on the plan.
/// @param sums  whether a server adds up the updates of a round
void note_idle_server_options(const YamlMap& map, const ServerOptions& options, bool sums, Plan& plan);

}  // namespace stepcast
