#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/transport/transport.hpp"

namespace stepcast {

/// Address of a rank's listening socket: an IPv4 address and a TCP port. A rank that connects shows the key,
/// which it knows from the exchange of the endpoints; other processes are dropped.
struct Endpoint {
  std::string address;
  int port = 0;
  std::uint64_t key = 0;
};

/// Listening socket of one rank. All ranks listen first, exchange their endpoints, then connect.
class Listener {
 public:
  /// Listens at a free port of `address`, with a random key. @throws std::system_error
  explicit Listener(const std::string& address);
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;
  ~Listener();

  const Endpoint& endpoint() const { return endpoint_; }
  int socket() const { return socket_; }

 private:
  int socket_ = -1;
  Endpoint endpoint_;
};

/// Connects a full mesh of TCP connections; every rank calls this at about the same time with the same
/// `endpoints`.
/// @param window  send-buffer size of each connection [bytes]; 0: the system's default
/// @throws std::system_error; std::runtime_error where a peer does not answer for 30 s
std::unique_ptr<Transport> connect_sockets(const Listener& listener, RankId rank,
                                           const std::vector<Endpoint>& endpoints, int window = 0);

}  // namespace stepcast
