#pragma once

#include "strategies/options/strategy.hpp"
#include "strategies/parameter_server/server_client.hpp"

namespace stepcast {

/// Options of elastic averaging.
struct ElasticAveraging {
  int steps = 1;
  int period = 1;              ///< tau: mini-batches between exchanges
  double elastic_force = 0.9;  ///< a
  double local_arrays = 3;     ///< that the worker's move reads and writes: reads x and y, writes x
};

/// The options with what the plan adds to them.
struct ElasticRun {
  ElasticAveraging options;
  LocalWork pull;  ///< the worker's move towards the center
  Servers servers;
  MiniBatch batch;
};

/// Asynchronous elastic averaging SGD (EASGD). Each worker has parameters x, the center (on the servers) has
/// y. A worker repeats, at its own pace:
///
///   1. x = x - learning rate x gradient at x, tau times
///   2. sends x to the center, which answers with y
///   3. x = x - a (x - y)    on the worker
///      y = y + a (x - y)    on the center, with the x that it received
///
/// Source: S. Zhang, A. Choromanska, Y. LeCun, "Deep learning with elastic averaging SGD", NIPS 2015,
/// algorithm 1.
Program elastic_averaging(Worker& worker, const ElasticRun& run);

/// Step 3 of the worker: x = x - a (x - y), with x in `parameters` and y in `center`.
Arithmetic elastic_pull(double a);
/// Step 3 of the center: y = y + a (x - y), with x in `update` and y in `parameters`.
std::function<void(Arrays&, const Slice&, int)> elastic_center_move(double a);

Strategy elastic_averaging_strategy();

}  // namespace stepcast
