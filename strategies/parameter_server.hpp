#pragma once

#include "strategies/client.hpp"
#include "strategies/strategy.hpp"

namespace stepcast {

/// Downpour SGD: workers send updates to a parameter server and read its parameters, each at its own pace; or
/// in rounds, where the server waits.
struct ParameterServer {
  int steps = 1;
  int n_push = 1;            ///< mini-batches between updates sent
  int n_fetch = 1;           ///< mini-batches between reads
  bool overlap = false;      ///< reads and updates travel beside the mini-batches
  bool local_update = true;  ///< the worker steps its own copy too
  bool rounds = false;       ///< a step is a version of the server's, not a mini-batch
  Servers servers;
  MiniBatch batch;
  bool compressed = false;
  LocalWork quantize;  ///< of an update that is compressed

  bool joint() const { return !overlap && n_push == n_fetch; }  ///< the answer to an update is the read
};

/// Source: J. Dean et al., "Large scale distributed deep networks", NIPS 2012, section 4.1 and algorithm 1.
Program parameter_server(Worker& worker, const ParameterServer& options);

/// `strategy: {kind: parameter_server}`
Plan read_parameter_server(const YamlValue& value, const Setting& setting);

}  // namespace stepcast
