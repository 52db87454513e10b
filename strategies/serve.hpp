#pragma once

#include "strategies/client.hpp"
#include "strategies/server_ledger.hpp"

namespace stepcast {

/// A parameter server, or one shard of it, or a sub-master between workers and it.
struct Server {
  ServerRules rules;
  bool serial = false;        ///< receives, applies and answers one client after the other
  bool answer_first = false;  ///< answers, then applies (elastic averaging)
  LocalWork apply;            ///< an update to the parameters
  LocalWork add;              ///< synchronous: a gradient to the sum
  LocalWork restore;          ///< of a compressed update
  Bytes size;                 ///< of its parameters, as they travel
  int parts = 1;
  Slice elements;          ///< of the model
  int validate_every = 0;  ///< updates; 0: never
  Seconds validation;
  Servers parent;        ///< of a sub-master; empty: none
  int parent_every = 1;  ///< updates between exchanges with it
  /// Of a sub-master that sends its parent its parameters and is moved towards the answer, as its workers
  /// are; empty: it sends the sum of the updates since, and takes what the parent has.
  Arithmetic pull;
  bool top = true;   ///< its work counts as the server's, else as a sub-master's
  bool leaf = true;  ///< serves workers: the staleness of their updates is recorded
};

/// What clients send lands in `update`. `add` and a sub-master sum it in `gradients`.
///
/// Records "server_busy" and "server_idle" (of a sub-master "sub_master_...") [s], "staleness"
/// ("first_staleness": of the first update of a worker), "lead", "dropped", and "applied" at the top.
///
/// Source: J. Dean et al., "Large scale distributed deep networks", NIPS 2012, section 4.1 (asynchronous);
/// J. Chen et al., "Revisiting distributed synchronous SGD", arXiv:1604.00981 (backup workers); Q. Ho et al.,
/// "More effective distributed ML via a stale synchronous parallel parameter server", NIPS 2013 (bounded
/// staleness); serial: the NNLO package, nnlo/mpi/process.py, class MPIMaster.
Program serve(Worker& worker, const Server& options);

}  // namespace stepcast
