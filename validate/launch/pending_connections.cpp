#include "validate/launch/pending_connections.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <thread>
#include <vector>

#include "runtime/rendezvous/store.hpp"

namespace stepcast {
namespace {

std::string endpoint_of(const sockaddr_in& peer) {
  char address[INET_ADDRSTRLEN] = "";
  inet_ntop(AF_INET, &peer.sin_addr, address, sizeof address);
  return fmt::format("{}:{}", address, ntohs(peer.sin_port));
}

}  // namespace

PendingConnections::~PendingConnections() {
  for (const PendingConnection& one : pending_) close(one.socket);
}

void PendingConnections::close_oldest(const Drop& drop) {
  const std::string peer = pending_.front().peer;
  close(pending_.front().socket);
  pending_.pop_front();
  drop(peer);
}

void PendingConnections::accept_all(const Drop& drop) {
  for (std::size_t i = 0; i < kMost; ++i) {  // those that came before are read in between
    sockaddr_in peer{};
    socklen_t size = sizeof peer;
    const int socket = accept4(listener_, reinterpret_cast<sockaddr*>(&peer), &size, SOCK_CLOEXEC);
    if (socket >= 0) {
      pending_.push_back({socket, endpoint_of(peer), {}, Clock::now() + kTokenTime});
      if (pending_.size() > kMost) close_oldest(drop);
    } else if (errno == EAGAIN || errno == EINVAL) {  // no more, or the socket was shut down
      return;
    } else if (errno != EINTR && errno != ECONNABORTED) {  // no more descriptors or memory
      if (pending_.empty()) return std::this_thread::sleep_for(std::chrono::milliseconds(10));
      close_oldest(drop);
    }
  }
}

/// Reads no more than the token, which begins with its length (32 bits): what follows belongs to the rank.
PendingConnections::Seen PendingConnections::read(PendingConnection& one) const {
  std::uint32_t length = 0;
  while (true) {
    if (one.bytes.size() >= sizeof length) std::memcpy(&length, one.bytes.data(), sizeof length);
    if (length > kMaxStoreKey) return Seen::wrong;
    const std::size_t wanted = sizeof length + length - one.bytes.size();
    if (wanted == 0) return equal_tokens(token_, one.bytes.substr(sizeof length)) ? Seen::token : Seen::wrong;
    char buffer[sizeof length + kMaxStoreKey];
    const ssize_t got = recv(one.socket, buffer, wanted, MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return Seen::nothing;
    if (got <= 0) return Seen::wrong;
    one.bytes.append(buffer, got);
  }
}

void PendingConnections::wait(const Admit& admit, const Drop& drop) {
  constexpr int kPeriod = 100;  // [ms]
  std::vector<pollfd> sockets{{listener_, POLLIN, 0}};
  for (const PendingConnection& one : pending_) sockets.push_back({one.socket, POLLIN, 0});
  poll(sockets.data(), sockets.size(), kPeriod);
  const auto now = Clock::now();
  for (auto one = pending_.begin(); one != pending_.end();) {
    const Seen seen = read(*one);
    if (seen == Seen::nothing && now < one->until) {
      ++one;
      continue;
    }
    const PendingConnection gone = std::move(*one);
    one = pending_.erase(one);
    if (seen == Seen::token && ::send(gone.socket, "w", 1, MSG_DONTWAIT | MSG_NOSIGNAL) == 1) {
      admit(gone.socket, gone.peer);
    } else {
      close(gone.socket);
      drop(gone.peer);
    }
  }
  if (sockets.front().revents != 0) accept_all(drop);
}

}  // namespace stepcast
