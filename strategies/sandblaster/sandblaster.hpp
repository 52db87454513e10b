#pragma once

#include <cstddef>

#include "strategies/options/strategy.hpp"
#include "strategies/parameter_server/server_client.hpp"
#include "strategies/sandblaster/coordinator.hpp"

namespace stepcast {

/// Options of Sandblaster.
struct Sandblaster {
  int batches = 1;
  WorkQueue::Options queue;
  int history = 10;  ///< pairs that L-BFGS keeps
};

/// The options with what the plan adds to them.
struct SandblasterRun {
  Sandblaster options;
  RoleId coordinator;  ///< replicas are roles 0, 1, ...
  Servers servers;
  LocalWork vector_work;  ///< one vector operation on one server
  LocalWork add;          ///< adds a gradient to the sum on one server
  MiniBatch portion;
  Seconds array = {};  ///< time of a replica to read or write one array of the parameters
};

// Sandblaster L-BFGS. The parameters, the sum of gradients and the history lie on sharded servers. A batch is
// divided into small portions. For every batch:
//
//   1. the coordinator hands portions to replicas. A replica reads the parameters once per batch, computes
//      the gradients of portions, and sends their sum to the servers after every `send_every` of them
//   2. the coordinator hands slow portions out a second time (backup tasks); the first result counts
//   3. when all gradients have arrived, the coordinator commands the servers to compute the direction and the
//      step of L-BFGS, each on its part, one vector operation after the other (coordinator.hpp)
//
// Portion t is mini-batch t of the training data in every batch, whoever computes it.
//
// Source: J. Dean et al., "Large scale distributed deep networks", NIPS 2012, section 4.2 and algorithm 2.

/// Records "wasted" (results that came second), "batch_phase" and "vector_phase" [s].
Program sandblaster_coordinator(Worker& worker, const SandblasterRun& run);
Program sandblaster_replica(Worker& worker, const SandblasterRun& run);
/// @param index  of the server among the shards
Program sandblaster_server(Worker& worker, const SandblasterRun& run, std::size_t index);

Strategy sandblaster_strategy();

}  // namespace stepcast
