#pragma once

#include <map>
#include <vector>

#include "strategies/program/message.hpp"

namespace stepcast {

/// When a server applies its clients' updates, and when it answers.
struct ServerRules {
  enum class Mode {
    asynchronous,      ///< applies every update when it arrives
    synchronous,       ///< applies `take` updates of one version together; drops later ones of that version
    bounded_staleness  ///< like asynchronous, but a client too far ahead of the slowest waits for its answer
  };

  Mode mode = Mode::asynchronous;
  std::vector<int> clients;  ///< roles
  int take = 1;              ///< synchronous: updates of a version
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
    std::vector<int> answers;  ///< roles that get the parameters now
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
  std::vector<int> waiting_;
  Outcome outcome_;
  std::map<int, int> clocks_;  ///< updates of each client
};

bool is_update(const Message& request);
bool wants_answer(const Message& request);

}  // namespace stepcast
