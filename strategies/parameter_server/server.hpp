#pragma once

#include <functional>
#include <map>
#include <vector>

#include "strategies/parameter_server/server_client.hpp"
#include "strategies/program/program.hpp"

namespace stepcast {

/// The rules by which a server applies its clients' updates and answers.
struct ServerRules {
  enum class Mode {
    asynchronous,  ///< the server applies every update when it arrives
    synchronous,   ///< the server applies the first `take` updates of a version together and drops later ones
    bounded_staleness  ///< as asynchronous, but a client that is too far ahead waits for its answer
  };

  Mode mode = Mode::asynchronous;
  std::vector<RoleId> clients;
  int take = 1;      ///< synchronous: number of updates that make a version
  int versions = 0;  ///< synchronous: number of versions in a run; later requests are answered at once
  int bound = 0;  ///< bounded_staleness: number of updates that a client may be ahead of the slowest client
};

/// Decides which updates count and when clients are answered. It counts the versions of the parameters (a
/// version is made whenever updates are applied) and the updates of each client, and it knows which clients
/// wait. It holds no parameters.
class UpdatePolicy {
 public:
  explicit UpdatePolicy(ServerRules rules);

  struct Outcome {
    bool accepted = false;  ///< the update counts
    bool dropped = false;   ///< the update arrived too late for its version
    bool applied = false;   ///< the server makes a new version
    double staleness = 0;   ///< versions that were made after the sender's last read; of an accepted update
    std::vector<RoleId> answers;  ///< clients that get the parameters now
  };

  /// Decides about a request. A request without an array is a read. A request with an array is an update,
  /// and a read too if it is `answered`. The value of a request is the version that its sender read last. The
  /// outcome is valid until the next call.
  const Outcome& arrived(const Message& request);

  int version() const { return version_; }
  void set_version(int version) { version_ = version; }
  /// Largest number of updates by which an answered client was ahead of the slowest client.
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

/// Options of a parameter server, of one of its shards, or of a sub-master, which is a server for its workers
/// and a client of its parent.
struct Server {
  ServerRules rules;
  bool serial = false;        ///< the server receives, applies and answers one client after the other
  bool answer_first = false;  ///< the server answers an update before it applies it (elastic averaging)
  LocalWork apply;            ///< work that applies an update to the parameters
  LocalWork add;              ///< synchronous: work that adds a gradient to the sum
  LocalWork restore;          ///< work that decompresses an update
  Seconds array;              ///< time to read or write one array of its parameters
  /// Updates travel array by array, each in a round of its own (synchronous). `apply_slice` applies the
  /// summed gradient of one array. It takes that array's share (its elements over all elements) of the times
  /// of `apply` and `add`.
  std::function<void(Arrays&, const Slice&)> apply_slice;
  Bytes size;              ///< size of its parameters in messages
  int parts = 1;           ///< messages that carry the parameters
  Slice elements;          ///< elements of the model
  int validate_every = 0;  ///< number of updates between two validations; 0: no validation
  Seconds validation;      ///< time of one validation
  Servers parent;          ///< the servers that a sub-master is a client of; empty: not a sub-master
  int parent_every = 1;    ///< number of updates between two exchanges with the parent
  /// A sub-master with `pull` sends its parameters to its parent and applies `pull` to the answer, as its
  /// workers do. Without `pull` it sends the sum of its updates and takes the parent's parameters.
  LocalWork pull;
  bool top = true;   ///< true: results count its time as the server's; false: as a sub-master's
  bool leaf = true;  ///< true: its clients are workers, so the staleness of their updates is recorded
};

/// A server repeats:
///
///   1. receives a request of any client: an update, a read, or both (serial: asks for the update first)
///   2. asks its UpdatePolicy whether the update counts, and which clients to answer
///   3. applies the update to the parameters v by the strategy's `apply`; synchronous: applies the sum of the
///      workers' gradients
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
