#pragma once

#include <map>
#include <vector>

#include "strategies/message.hpp"

namespace stepcast {

/// When a server applies what its clients send, and when it answers.
struct ServerRules {
  enum class Mode {
    asynchronous,      ///< every update at once
    synchronous,       ///< so many updates of one version together; later ones of it are dropped
    bounded_staleness  ///< at once, but a client that is too far ahead of the slowest waits for its answer
  };

  Mode mode = Mode::asynchronous;
  std::vector<int> clients;  ///< roles
  int take = 1;              ///< synchronous: updates that make a version
  int versions = 0;          ///< synchronous: so many; afterwards every client is answered at once
  int bound = 0;             ///< bounded_staleness: updates that a client may be ahead of the slowest
};

/// What a server knows of its clients: the version of its parameters, who waits, how far each client is.
/// Counting only; a version is the number of updates applied.
class ServerLedger {
 public:
  explicit ServerLedger(ServerRules rules);

  struct Outcome {
    bool accepted = false;     ///< the update counts
    bool dropped = false;      ///< the update came too late for its version
    bool applied = false;      ///< a new version is made
    double staleness = 0;      ///< of an accepted update: versions since its sender last read
    std::vector<int> answers;  ///< roles that get the parameters now
  };

  /// A request: a read (no array), an update (gradients: no answer wanted) or both (any other array). Its
  /// value is the version that the sender last read. The outcome lies here until the next one.
  const Outcome& arrived(const Message& request);

  int version() const { return version_; }
  void set_version(int version) { version_ = version; }
  /// Updates that the fastest client that has its answer is ahead of the slowest.
  int lead() const { return lead_; }

 private:
  void arrived_asynchronous(const Message& request, Outcome& outcome);
  void arrived_synchronous(const Message& request, Outcome& outcome);
  void arrived_bounded(const Message& request, Outcome& outcome);

  ServerRules rules_;
  int version_ = 0, taken_ = 0, lead_ = 0;
  std::vector<int> waiting_;
  Outcome outcome_;
  std::map<int, int> clocks_;  ///< updates so far, by client
};

bool is_update(const Message& request);
bool wants_answer(const Message& request);

}  // namespace stepcast
