#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "strategies/model_parallel/layer_segments.hpp"
#include "strategies/program/program.hpp"
#include "strategies/program/worker.hpp"

namespace stepcast {

/// Tags of the messages between workers and servers.
enum ServerTag : int {
  kBegin = 1,  ///< to a serial server: an update or a read is ready
  kGrant,      ///< the serial server is ready to receive it
  kRequest,    ///< a read, an update, or both (UpdatePolicy)
  kWeights     ///< the parameters
};

/// A server as its client sees it, with the part of the parameters that it holds.
struct Shard {
  RoleId role = {};
  Bytes size;           ///< size of the parameters in messages
  int parts = 1;        ///< messages that carry the parameters
  Bytes update = {};    ///< size of an update of them; smaller than `size` if compressed
  Slice elements = {};  ///< elements of the model
  Codec codec = {};     ///< compression of an update
};

/// The servers with which one client exchanges.
struct Servers {
  std::vector<Shard> shards;
  bool serial = false;  ///< each serves one client after the other; a client asks before it sends
  /// With rounds of arrays: the server that holds each bucket of the workload; empty: all servers hold a
  /// part.
  std::vector<int> shard_of_bucket = {};
};

/// Versions that a client has read, and its operations in flight.
struct ClientState {
  struct Read {
    RoleId role;  ///< role of the server
    double version;
  };
  std::vector<Read> versions;
  std::vector<Pending> reads, pushes;

  void has_read(const Message& weights);
  double version() const;  ///< oldest version of all servers
};

/// Compresses the update in `array` into the buffers that are sent.
void compress_update(Arrays& arrays, const Servers& servers, Array array);

/// sum = sum + values, or sum = values for the first.
/// @param array  time to read or write one array of the parameters
LocalWork add_array(Array values, Array sum, bool first, Seconds array);

/// The array that a client sends to all shards, and the array that receives their parameters.
struct ClientExchange {
  Array update = Array::none;  ///< none: only a read
  Array into = Array::none;
};

/// Sends an update to all shards and waits for their parameters.
SubProgram exchange(Worker& worker, const Servers& servers, ClientExchange what, ClientState& state);
/// Sends an update to all shards and waits until it has arrived.
SubProgram push(Worker& worker, const Servers& servers, Array update, ClientState& state);

/// Read or update that overlaps with other work, for servers that are not serial.
/// Waits for the read that runs, copies its parameters from `center`, and starts the next read.
/// @param array  time to read or write one array of the parameters
SubProgram start_fetch(Worker& worker, const Servers& servers, Seconds array, ClientState& state);
/// Waits until the last update has arrived, after which its array may change.
SubProgram finish_push(Worker& worker, ClientState& state);
void start_push(Worker& worker, const Servers& servers, Array update, ClientState& state);

/// One mini-batch of a worker, or of one of the ranks that make up a worker, from the plan.
struct MiniBatch {
  Seconds overhead;  ///< time outside the layers
  int prefetch = 1;
  CollectiveId sum = {};    ///< of the group after the backward pass: sum of gradients, or a barrier
  CollectiveId share = {};  ///< of the group at the end of the step: new weights, or a barrier
  /// Passes of a rank that has a part of the network, with the exchanges of its group; null: it has all of
  /// it.
  std::shared_ptr<const PassSegments> passes = {};
  Seconds exchange_overhead = {};  ///< device time of every exchange in them
};

/// Starts a mini-batch: awaits its input and the time outside the layers, which precede the passes.
SubProgram start_mini_batch(Worker& worker, const MiniBatch& options, std::deque<Pending>& loads);
SubProgram train_mini_batch(Worker& worker, const MiniBatch& options, std::deque<Pending>& loads);
/// End of the step: new weights for all ranks of the group.
SubProgram share_weights(Worker& worker, const MiniBatch& options);

}  // namespace stepcast
