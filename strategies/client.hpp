#pragma once

#include <deque>
#include <vector>

#include "strategies/part.hpp"
#include "strategies/worker.hpp"

namespace stepcast {

/// What workers and servers send each other.
enum ServerTag : int {
  kBegin = 1,  ///< to a serial server: an update (or a read) is ready
  kGrant,      ///< the serial server is free to take it
  kRequest,    ///< a read, an update, or both (server_ledger.hpp)
  kWeights     ///< the parameters
};

/// A server as its client sees it: it holds so much of the parameters.
struct Shard {
  int role = 0;
  Bytes size;
  int parts = 1;        ///< messages that they travel in
  Bytes update = {};    ///< size of an update to them: less, where it is compressed
  Slice elements = {};  ///< of the model
  Codec codec = {};     ///< of an update to them
};

struct Servers {
  std::vector<Shard> shards;
  bool serial = false;  ///< each serves one client after the other, and is asked before anything is sent
};

/// What a client has read, and what is under way.
struct ClientState {
  struct Read {
    int role;  ///< of the server
    double version;
  };
  std::vector<Read> versions;
  std::vector<Pending> reads, pushes;

  void has_read(const Message& weights);
  double version() const;  ///< the oldest
};

/// The update in `array`, or the gradients, into what travels. Nothing where updates travel whole.
void compress_update(Arrays& arrays, const Servers& servers, Array array);

/// parameters = center, of what these servers hold.
void take_center(Arrays& arrays, const Servers& servers);

/// Reads all shards, into `center`.
Part fetch(Worker& worker, const Servers& servers, ClientState& state);
/// Sends an update to all shards and waits until it is there.
Part push(Worker& worker, const Servers& servers, ClientState& state);
/// Sends to all shards and waits for their parameters, into `center`.
/// @param what  update: differences; parameters: the worker's own
Part exchange(Worker& worker, const Servers& servers, Array what, ClientState& state);

/// The same beside other work (servers that are not serial): waits for the last of its kind, then starts.
/// What came is taken when it was waited for.
Part start_fetch(Worker& worker, const Servers& servers, ClientState& state);
Part start_push(Worker& worker, const Servers& servers, ClientState& state);

/// How a worker, or one of several that make up a worker, gets through a mini-batch.
struct MiniBatch {
  Seconds overhead;  ///< outside the layers
  int prefetch = 1;
  int sum = -1;    ///< collective of the group: gradients of all of it, or a meeting; -1: none
  int share = -1;  ///< new weights to all of it, or a meeting
};

Part train_mini_batch(Worker& worker, const MiniBatch& options, std::deque<Pending>& loads);
/// The end of the step, after the exchange.
Part share_weights(Worker& worker, const MiniBatch& options);

}  // namespace stepcast
