#pragma once

#include <map>
#include <vector>

#include "strategies/parameter_server/server_client.hpp"
#include "strategies/program/program.hpp"

namespace stepcast {

/// When a server applies its clients' updates, and when it answers.
struct ServerRules {
  enum class Mode {
    asynchronous,      ///< applies every update when it arrives
    synchronous,       ///< applies `take` updates of one version together; drops later ones of that version
    bounded_staleness  ///< like asynchronous, but a client too far ahead of the slowest waits for its answer
  };

  Mode mode = Mode::asynchronous;
  std::vector<RoleId> clients;
  int take = 1;      ///< synchronous: updates of a version
  int versions = 0;  ///< synchronous: versions of the run; afterwards every client is answered at once
  int bound = 0;     ///< bounded_staleness: updates that a client may be ahead of the slowest
};

/// Counts a server's updates: the version of its parameters (number of updates applied), the clients that
/// wait and the progress of each client. It handles no data.
class UpdatePolicy {
 public:
  explicit UpdatePolicy(ServerRules rules);

  struct Outcome {
    bool accepted = false;  ///< the update counts
    bool dropped = false;   ///< the update arrived too late for its version
    bool applied = false;   ///< the server makes a new version
    double staleness = 0;   ///< staleness of an accepted update: versions since the last read of its sender
    std::vector<RoleId> answers;  ///< clients that get the parameters now
  };

  /// Decides about a request: a read (no array), an update that needs no answer (gradients), or both (any
  /// other array). Its value is the version that the sender last read. The outcome is valid until the next
  /// call.
  const Outcome& arrived(const Message& request);

  int version() const { return version_; }
  void set_version(int version) { version_ = version; }
  /// Largest number of updates that an answered client was ahead of the slowest.
  int lead() const { return lead_; }

 private:
  void arrived_asynchronous(const Message& request, Outcome& outcome);
  void arrived_synchronous(const Message& request, Outcome& outcome);
  void arrived_bounded(const Message& request, Outcome& outcome);

  ServerRules rules_;
  int version_ = 0, taken_ = 0, lead_ = 0;
  std::vector<RoleId> waiting_;
  Outcome outcome_;
  std::map<RoleId, int> clocks_;  ///< updates of each client
};

/// Options of a parameter server, of one shard of it, or of a sub-master between it and workers.
struct Server {
  ServerRules rules;
  bool serial = false;        ///< receives, applies and answers one client after the other
  bool answer_first = false;  ///< answers an update before it applies it (elastic averaging)
  LocalWork apply;            ///< applies an update to the parameters
  LocalWork add;              ///< synchronous: adds a gradient to the sum
  LocalWork restore;          ///< restores a compressed update
  Bytes size;                 ///< size of its parameters in messages
  int parts = 1;              ///< messages that carry the parameters
  Slice elements;             ///< elements of the model
  int validate_every = 0;     ///< updates between two validations; 0: none
  Seconds validation;         ///< time of one validation
  Servers parent;             ///< server of a sub-master; empty: none
  int parent_every = 1;       ///< updates between exchanges with the parent
  /// A sub-master with `pull` sends its parameters to its parent and applies `pull` to the answer, as its
  /// workers do. Without `pull` it sends the sum of its updates and takes the parent's parameters.
  Arithmetic pull;
  bool top = true;   ///< its time is recorded as the server's; false: as a sub-master's
  bool leaf = true;  ///< serves workers: the staleness of their updates is recorded
};

/// A server repeats:
///
///   1. receives a request of any client: an update, a read, or both (serial: asks for the update first)
///   2. decides by its policy (UpdatePolicy) whether the update counts, and which clients to answer
///   3. v = v + update, as the strategy's `apply` does it; synchronous: after the sum of all workers'
///   gradients
///   4. sends v to these clients (answer_first: before step 3)
///
/// Updates arrive in `update`. `add` and sub-masters sum them in `gradients`.
///
/// Records "server_busy" and "server_idle" [s] (a sub-master: "sub_master_..."), "staleness"
/// ("first_staleness" for the first update of a worker), "lead", "dropped", and at the top "applied".
///
/// Source: J. Dean et al., "Large scale distributed deep networks", NIPS 2012, section 4.1 (asynchronous);
/// J. Chen et al., "Revisiting distributed synchronous SGD", arXiv:1604.00981 (backup workers); Q. Ho et al.,
/// "More effective distributed ML via a stale synchronous parallel parameter server", NIPS 2013 (bounded
/// staleness); serial: the NNLO package, nnlo/mpi/process.py, class MPIMaster.
Program serve(Worker& worker, const Server& options);

}  // namespace stepcast
