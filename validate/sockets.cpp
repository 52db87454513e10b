#include "validate/sockets.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <system_error>

namespace stepcast {
namespace {

constexpr char kCongestion[] = "reno";

constexpr std::int64_t kPiece = 32768;  // floats taken from a socket at once, through a buffer in the cache

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

/// One connection; a float that is half sent or half received waits here for its rest.
struct Connection {
  int socket = -1;
  int unsent = 0;  ///< bytes of the float that was begun
  char received[sizeof(float)]{};
  int partial = 0;  ///< bytes in `received`
};

class Sockets : public Transport {
 public:
  Sockets(int rank, std::vector<Connection> connections)
      : Transport(rank, static_cast<int>(connections.size())),
        connections_(std::move(connections)),
        buffer_(static_cast<std::size_t>(kPiece) + 1),
        bell_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (bell_ < 0) fail("eventfd");
  }
  ~Sockets() override {
    close(bell_);
    for (const Connection& connection : connections_) {
      if (connection.socket >= 0) close(connection.socket);
    }
  }

  std::int64_t send_some(int peer, const float* data, std::int64_t count) override {
    Connection& way = connections_[static_cast<std::size_t>(peer)];
    const auto* bytes = reinterpret_cast<const char*>(data);
    const std::size_t begun = way.unsent > 0 ? sizeof(float) - static_cast<std::size_t>(way.unsent) : 0;
    const std::size_t all = static_cast<std::size_t>(count) * sizeof(float);
    const ssize_t sent = ::send(way.socket, bytes + begun, all - begun, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0) return nothing_yet(peer);
    const std::size_t total = begun + static_cast<std::size_t>(sent);
    const std::size_t rest = total % sizeof(float);
    way.unsent = rest == 0 ? 0 : static_cast<int>(sizeof(float) - rest);
    return static_cast<std::int64_t>(total / sizeof(float));
  }

  std::int64_t receive_some(int peer, float* target, std::int64_t count, Arrival arrival) override {
    Connection& way = connections_[static_cast<std::size_t>(peer)];
    auto* bytes = reinterpret_cast<char*>(buffer_.data());
    const std::size_t wanted = static_cast<std::size_t>(std::min(count, kPiece)) * sizeof(float);
    const auto partial = static_cast<std::size_t>(way.partial);
    std::memcpy(bytes, way.received, partial);
    const ssize_t got = recv(way.socket, bytes + partial, wanted - partial, MSG_DONTWAIT);
    if (got < 0) return nothing_yet(peer);
    if (got == 0) throw PeerGone(fmt::format("rank {} closed its connection to rank {}", peer, rank()));
    const std::size_t total = partial + static_cast<std::size_t>(got);
    const std::size_t floats = total / sizeof(float);
    way.partial = static_cast<int>(total % sizeof(float));
    std::memcpy(way.received, bytes + floats * sizeof(float), static_cast<std::size_t>(way.partial));
    for (std::size_t i = 0; i < floats; ++i) {
      target[i] = arrival == Arrival::add ? target[i] + buffer_[i] : buffer_[i];
    }
    return static_cast<std::int64_t>(floats);
  }

  void wait(const std::vector<int>& sending_to, const std::vector<int>& receiving_from) override {
    waited();
    std::vector<pollfd> waits;
    for (const int peer : sending_to) waits.push_back({connection(peer), POLLOUT, 0});
    for (const int peer : receiving_from) waits.push_back({connection(peer), POLLIN, 0});
    waits.push_back({bell_, POLLIN, 0});
    if (poll(waits.data(), waits.size(), 1000) < 0 && errno != EINTR) fail("poll");
    eventfd_t rung = 0;
    if (waits.back().revents != 0) eventfd_read(bell_, &rung);
  }

  void wake() override { eventfd_write(bell_, 1); }

 private:
  int connection(int peer) const { return connections_[static_cast<std::size_t>(peer)].socket; }

  std::int64_t nothing_yet(int peer) const {
    if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) return 0;
    throw PeerGone(
        fmt::format("the connection from rank {} to rank {} broke: {}", rank(), peer, std::strerror(errno)));
  }

  std::vector<Connection> connections_;
  std::vector<float> buffer_;
  int bell_;
};

void wait_for(int socket, short event, int peer) {
  pollfd one{socket, event, 0};
  const int ready = poll(&one, 1, 30'000);
  if (ready < 0) fail("poll");
  if (ready == 0) throw std::runtime_error(fmt::format("rank {} did not answer for 30 s", peer));
}

int connected_to(const Endpoint& endpoint, int rank) {
  const int one = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (one < 0) fail("socket");
  const sockaddr_in address = address_of(endpoint);
  if (connect(one, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    close(one);
    fail("connect");
  }
  const std::int32_t name = rank;
  if (::send(one, &name, sizeof name, MSG_NOSIGNAL) != sizeof name) fail("send");
  return one;
}

/// @return the socket and the rank that came
std::pair<int, int> accepted(const Listener& listener, int ranks) {
  wait_for(listener.socket(), POLLIN, ranks - 1);
  const int one = accept4(listener.socket(), nullptr, nullptr, SOCK_CLOEXEC);
  if (one < 0) fail("accept");
  std::int32_t name = -1;
  if (recv(one, &name, sizeof name, MSG_WAITALL) != sizeof name || name < 0 || name >= ranks) {
    close(one);
    throw std::runtime_error("something that is no rank connected");
  }
  return {one, name};
}

}  // namespace

Listener::Listener(const std::string& address) : endpoint_{address, 0} {
  socket_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (socket_ < 0) fail("socket");
  sockaddr_in name = address_of(endpoint_);
  socklen_t size = sizeof name;
  if (bind(socket_, reinterpret_cast<const sockaddr*>(&name), size) != 0 || listen(socket_, 64) != 0 ||
      getsockname(socket_, reinterpret_cast<sockaddr*>(&name), &size) != 0) {
    close(socket_);
    fail("listen");
  }
  endpoint_.port = ntohs(name.sin_port);
}

Listener::~Listener() {
  close(socket_);
}

std::unique_ptr<Transport> connect_sockets(const Listener& listener, int rank,
                                           const std::vector<Endpoint>& endpoints, int window) {
  const int ranks = static_cast<int>(endpoints.size());
  std::vector<Connection> connections(endpoints.size());
  for (int peer = 0; peer < rank; ++peer) {
    connections[static_cast<std::size_t>(peer)].socket =
        connected_to(endpoints[static_cast<std::size_t>(peer)], rank);
  }
  for (int missing = rank + 1; missing < ranks; ++missing) {
    const auto [socket, peer] = accepted(listener, ranks);
    connections[static_cast<std::size_t>(peer)].socket = socket;
  }
  for (const Connection& connection : connections) {
    if (connection.socket < 0) continue;
    const int yes = 1;
    setsockopt(connection.socket, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    // Where the machine's default is BBR, it probes for bandwidth all the time, and equal sums take unequal
    // times.
    setsockopt(connection.socket, IPPROTO_TCP, TCP_CONGESTION, kCongestion, sizeof kCongestion - 1);
    if (window > 0) setsockopt(connection.socket, SOL_SOCKET, SO_SNDBUF, &window, sizeof window);
  }
  return std::make_unique<Sockets>(rank, std::move(connections));
}

}  // namespace stepcast
