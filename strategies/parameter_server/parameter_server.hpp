#pragma once

#include "strategies/options/strategy.hpp"
#include "strategies/parameter_server/server_client.hpp"

namespace stepcast {

/// Options of Downpour SGD.
struct ParameterServer {
  int steps = 1;
  int n_push = 1;               ///< mini-batches between two updates that a worker sends
  int n_fetch = 1;              ///< mini-batches between two reads
  bool overlap = false;         ///< reads and updates are sent during the mini-batches
  double message_slowdown = 1;  ///< factor on compute while they are sent
  bool local_update = true;     ///< the worker steps its own copy too
  bool array_rounds = false;    ///< with `rounds`: each array has its own round, during the backward pass
  bool rounds = false;          ///< the server waits for all updates of a version; a step is a version

  bool joint() const { return !overlap && n_push == n_fetch; }  ///< the answer to an update is the next read
};

/// The options with what the plan adds to them.
struct ParameterServerRun {
  ParameterServer options;
  Servers servers;
  MiniBatch batch;
  bool compressed = false;
  LocalWork quantize;  ///< work to compress an update
  Seconds array;       ///< time to read or write one array of the parameters

  /// The array that is sent: gradients that were summed over several mini-batches are in `update`, and
  /// updates that are sent during the next mini-batch in `change`.
  Array sent() const {
    if (options.overlap && !compressed) return Array::change;
    return options.n_push > 1 ? Array::update : Array::gradients;
  }
};

/// Downpour SGD: workers send gradients to a parameter server and read its parameters, each at its own pace
/// or in rounds. With w the worker's parameters and v those of the server, a worker does in step t:
///
///   1. every n_fetch steps: reads v;  w = v
///   2. g = gradient at w;  accrued = accrued + g
///   3. w = w - learning rate x g    (asynchronous modes)
///   4. every n_push steps: sends the accrued gradients;  accrued = 0;
///      the server does v = v - learning rate x accrued (parameter_server/server.hpp)
///
/// With rounds and overlap, step 4 sends each array as soon as the backward pass has its gradient, and the
/// server answers for each array; the next step begins when all answers are there. Source: TensorFlow,
/// docs_src/performance/performance_models.md, "parameter_server variables".
///
/// Where n_push = n_fetch, the server's answer to step 4 is the read of the next step 1.
///
/// Source: J. Dean et al., "Large scale distributed deep networks", NIPS 2012, section 4.1 and algorithm 1.
Program parameter_server(Worker& worker, const ParameterServerRun& run);

Strategy parameter_server_strategy();

}  // namespace stepcast
