#include "runtime/transport/tcp_transport.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <system_error>

#include "core/error.hpp"

namespace stepcast {
namespace {

constexpr char kCongestion[] = "reno";

// Floats read from a socket at once, into a buffer that fits the cache.
constexpr std::int64_t kReadFloats = 32768;

[[noreturn]] void fail(const char* what) {
  throw std::system_error(errno, std::generic_category(), what);
}

sockaddr_in address_of(const Endpoint& endpoint) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(endpoint.port));
  if (inet_pton(AF_INET, endpoint.address.c_str(), &address.sin_addr) != 1) {
    throw std::runtime_error("not an IPv4 address: " + endpoint.address);
  }
  return address;
}

/// One TCP connection, with the state of a float that is partly sent or partly received.
struct Connection {
  int socket = -1;
  int unsent = 0;  ///< bytes left of a float that is partly sent
  char received[sizeof(float)]{};
  int partial = 0;  ///< bytes in `received` of a float that is partly received
};

class TcpTransport : public Transport {
 public:
  TcpTransport(RankId rank, std::vector<Connection> connections)
      : Transport(rank, connections.size()),
        connections_(std::move(connections)),
        buffer_(kReadFloats + 1),
        wake_event_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (wake_event_ < 0) fail("eventfd");
  }
  ~TcpTransport() override {
    close(wake_event_);
    for (const Connection& connection : connections_) {
      if (connection.socket >= 0) close(connection.socket);
    }
  }

  std::int64_t send_some(RankId peer, const float* data, std::int64_t count) override {
    Connection& link = connections_[peer.index()];
    const auto* bytes = reinterpret_cast<const char*>(data);
    const std::size_t begun = link.unsent > 0 ? sizeof(float) - link.unsent : 0;
    const std::size_t all = count * sizeof(float);
    const ssize_t sent = ::send(link.socket, bytes + begun, all - begun, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0) return zero_or_throw(peer);
    const std::size_t total = begun + sent;
    const std::size_t rest = total % sizeof(float);
    link.unsent = rest == 0 ? 0 : (sizeof(float) - rest);
    return total / sizeof(float);
  }

  std::int64_t receive_some(RankId peer, float* target, std::int64_t count, OnReceive on_receive) override {
    Connection& link = connections_[peer.index()];
    auto* bytes = reinterpret_cast<char*>(buffer_.data());
    const std::size_t wanted = std::min(count, kReadFloats) * sizeof(float);
    const std::size_t partial = link.partial;
    std::memcpy(bytes, link.received, partial);
    const ssize_t got = recv(link.socket, bytes + partial, wanted - partial, MSG_DONTWAIT);
    if (got < 0) return zero_or_throw(peer);
    if (got == 0)
      throw PeerDisconnected(
          fmt::format("rank {} closed its connection to rank {}", peer.value, rank().value));
    const std::size_t total = partial + got;
    const std::size_t floats = total / sizeof(float);
    link.partial = total % sizeof(float);
    std::memcpy(link.received, bytes + floats * sizeof(float), link.partial);
    for (std::size_t i = 0; i < floats; ++i) {
      target[i] = on_receive == OnReceive::reduce ? target[i] + buffer_[i] : buffer_[i];
    }
    return floats;
  }

  void wait(const std::vector<RankId>& sending_to, const std::vector<RankId>& receiving_from) override {
    count_wait();
    std::vector<pollfd> waits;
    for (const RankId peer : sending_to) waits.push_back({connection(peer), POLLOUT, 0});
    for (const RankId peer : receiving_from) waits.push_back({connection(peer), POLLIN, 0});
    waits.push_back({wake_event_, POLLIN, 0});
    if (poll(waits.data(), waits.size(), 1000) < 0 && errno != EINTR) fail("poll");
    eventfd_t ignored = 0;
    if (waits.back().revents != 0) eventfd_read(wake_event_, &ignored);
  }

  void wake() override { eventfd_write(wake_event_, 1); }

 private:
  int connection(RankId peer) const { return connections_[peer.index()].socket; }

  std::int64_t zero_or_throw(RankId peer) const {
    if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) return 0;
    throw PeerDisconnected(fmt::format("the connection from rank {} to rank {} broke: {}", rank().value,
                                       peer.value, std::strerror(errno)));
  }

  std::vector<Connection> connections_;
  std::vector<float> buffer_;
  int wake_event_;
};

using Clock = std::chrono::steady_clock;

/// The first bytes that a rank sends to the listener that it connects to.
struct Handshake {
  std::uint64_t key = 0;
  std::int64_t rank = -1;
};

int connected_to(const Endpoint& endpoint, int rank) {
  const int one = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (one < 0) fail("socket");
  const sockaddr_in address = address_of(endpoint);
  const Handshake handshake{endpoint.key, rank};
  if (connect(one, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
      ::send(one, &handshake, sizeof handshake, MSG_NOSIGNAL) == sizeof handshake)
    return one;
  const std::string reason = std::strerror(errno);
  close(one);
  throw PeerDisconnected(
      fmt::format("rank {} cannot connect to {}:{}: {}", rank, endpoint.address, endpoint.port, reason));
}

/// A connection that was accepted and has not shown who it is.
struct PendingConnection {
  int socket = -1;
  Clock::time_point since;
  std::string address = {};  ///< ADDRESS:PORT
  Handshake handshake = {};
  std::size_t received = 0;

  /// Reads what is there. @return false if it closed the connection or broke it
  bool read_some() {
    char* to = reinterpret_cast<char*>(&handshake) + received;
    const ssize_t some = recv(socket, to, sizeof handshake - received, MSG_DONTWAIT);
    if (some > 0) received += some;
    return some > 0 || (some < 0 && (errno == EAGAIN || errno == EINTR));
  }
};

/// Accepts the connections of the ranks above this one. Processes that do not know the key, or say nothing
/// for a second, are dropped; ranks behind them do not wait for them.
class Acceptor {
 public:
  Acceptor(const Listener& listener, int rank, std::vector<Connection>& connections)
      : listener_(listener),
        rank_(rank),
        connections_(connections),
        missing_(connections.size() - rank - 1) {}
  Acceptor(const Acceptor&) = delete;
  ~Acceptor() {
    for (const PendingConnection& one : pending_) close(one.socket);
  }

  void run() {
    const auto end = Clock::now() + std::chrono::seconds(30);
    while (missing_ > 0) {
      if (Clock::now() > end) throw RankLost(fmt::format("rank {} did not answer for 30 s", first_missing()));
      wait();
      std::vector<PendingConnection> left;
      for (PendingConnection& one : pending_) {
        if (!is_done(one)) left.push_back(one);
      }
      pending_ = std::move(left);
    }
  }

 private:
  void wait() {
    std::vector<pollfd> waits{{listener_.socket(), POLLIN, 0}};
    for (const PendingConnection& one : pending_) waits.push_back({one.socket, POLLIN, 0});
    if (poll(waits.data(), waits.size(), 100) < 0 && errno != EINTR) fail("poll");
    if (waits[0].revents == 0) return;
    sockaddr_in peer{};
    socklen_t size = sizeof peer;
    const int one = accept4(listener_.socket(), reinterpret_cast<sockaddr*>(&peer), &size, SOCK_CLOEXEC);
    if (one < 0) return;
    char text[INET_ADDRSTRLEN] = "";
    inet_ntop(AF_INET, &peer.sin_addr, text, sizeof text);
    pending_.push_back({one, Clock::now(), fmt::format("{}:{}", text, ntohs(peer.sin_port))});
  }

  /// Takes a rank's connection, or drops a stranger's. @return false while the handshake is not complete
  bool is_done(PendingConnection& one) {
    const bool there = one.read_some();
    if (one.received == sizeof one.handshake && is_missing(one.handshake)) {
      connections_[one.handshake.rank].socket = one.socket;
      --missing_;
      return true;
    }
    const bool waits = there && one.received < sizeof one.handshake &&
                       Clock::now() - one.since < std::chrono::milliseconds(900);
    if (waits) return false;
    fmt::print(stderr, "rank {} dropped a connection from {}, which did not show its key\n", rank_,
               one.address);
    close(one.socket);
    return true;
  }

  bool is_missing(const Handshake& handshake) const {
    return handshake.key == listener_.endpoint().key && handshake.rank > rank_ &&
           handshake.rank < std::ssize(connections_) && connections_[handshake.rank].socket < 0;
  }

  std::size_t first_missing() const {
    std::size_t peer = rank_ + 1;
    while (connections_[peer].socket >= 0) ++peer;
    return peer;
  }

  const Listener& listener_;
  int rank_;
  std::vector<Connection>& connections_;
  int missing_;
  std::vector<PendingConnection> pending_;
};

std::uint64_t random_key() {
  std::uint64_t key = 0;
  if (getrandom(&key, sizeof key, 0) != sizeof key) fail("getrandom");
  return key;
}

}  // namespace

Listener::Listener(const std::string& address) : endpoint_{address, 0, random_key()} {
  socket_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (socket_ < 0) fail("socket");
  sockaddr_in bound = address_of(endpoint_);
  socklen_t size = sizeof bound;
  if (bind(socket_, reinterpret_cast<const sockaddr*>(&bound), size) != 0 || listen(socket_, 64) != 0 ||
      getsockname(socket_, reinterpret_cast<sockaddr*>(&bound), &size) != 0) {
    close(socket_);
    fail("listen");
  }
  endpoint_.port = ntohs(bound.sin_port);
}

Listener::~Listener() {
  close(socket_);
}

std::unique_ptr<Transport> connect_sockets(const Listener& listener, RankId rank,
                                           const std::vector<Endpoint>& endpoints, int window) {
  std::vector<Connection> connections(endpoints.size());
  for (int peer = 0; peer < rank.value; ++peer) {
    connections[peer].socket = connected_to(endpoints[peer], rank.value);
  }
  Acceptor(listener, rank.value, connections).run();
  for (const Connection& connection : connections) {
    if (connection.socket < 0) continue;
    const int yes = 1;
    setsockopt(connection.socket, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    // BBR, the default of some machines, probes for bandwidth all the time, so that equal all-reduces take
    // different times.
    setsockopt(connection.socket, IPPROTO_TCP, TCP_CONGESTION, kCongestion, sizeof kCongestion - 1);
    if (window > 0) setsockopt(connection.socket, SOL_SOCKET, SO_SNDBUF, &window, sizeof window);
  }
  return std::make_unique<TcpTransport>(rank, std::move(connections));
}

}  // namespace stepcast
