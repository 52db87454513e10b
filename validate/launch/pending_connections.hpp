#pragma once

#include <chrono>
#include <functional>
#include <list>
#include <string>

namespace stepcast {

/// Connections to a listening socket that have not shown the token yet. None lives longer than a second; if
/// there are too many, or if there are no more file descriptors, the oldest goes, so that connections without
/// the token keep nobody out who shows the token at once. A shown token is answered by 'w'.
class PendingConnections {
 public:
  static constexpr std::chrono::milliseconds kTokenTime{900};
  static constexpr std::size_t kMost = 512;  ///< at the same time

  using Admit = std::function<void(int socket, const std::string& peer)>;
  using Drop = std::function<void(const std::string& peer)>;

  /// @param listener  not blocking
  PendingConnections(int listener, std::string token) : listener_(listener), token_(std::move(token)) {}
  PendingConnections(const PendingConnections&) = delete;
  ~PendingConnections();

  /// Accepts and reads what is there, or waits 100 ms for it.
  /// @param admit  gets each socket that has shown the token, and closes it some time
  /// @param drop   called for each connection that was closed; `peer` is ADDRESS:PORT
  void wait(const Admit& admit, const Drop& drop);

 private:
  using Clock = std::chrono::steady_clock;
  struct PendingConnection {
    int socket = -1;
    std::string peer = {}, bytes = {};
    Clock::time_point until = {};
  };
  enum class Seen { nothing, token, wrong };

  void accept_all(const Drop& drop);
  void close_oldest(const Drop& drop);
  Seen read(PendingConnection& one) const;

  int listener_;
  std::string token_;
  std::list<PendingConnection> pending_;  ///< the oldest first
};

}  // namespace stepcast
