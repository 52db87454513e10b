#include "runtime/rendezvous/tcp_framing.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstdint>

#include "core/error.hpp"
#include "core/parse_number.hpp"

namespace stepcast {

sockaddr_in tcp_address(const std::string& store) {
  const auto colon = store.rfind(':');
  const std::string host = colon > 4 ? store.substr(4, colon - 4) : "";
  const auto port = parse_integer(store.substr(colon + 1));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  if (!port || *port < 1 || *port > 65535 || inet_pton(AF_INET, host.c_str(), &address.sin_addr) != 1) {
    throw InputError(
        fmt::format("--store: expected tcp:ADDRESS:PORT with an IPv4 address, got \"{}\"", store));
  }
  address.sin_port = htons(static_cast<std::uint16_t>(*port));
  return address;
}

namespace {

constexpr std::uint32_t kMaxText = 1 << 16;

}  // namespace

bool send_all(int socket, const void* data, std::size_t bytes) {
  const auto* from = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t some = ::send(socket, from, bytes, MSG_NOSIGNAL);
    if (some < 0 && errno == EINTR) continue;
    if (some <= 0) return false;
    from += some;
    bytes -= static_cast<std::size_t>(some);
  }
  return true;
}

bool receive_all(int socket, void* data, std::size_t bytes) {
  auto* to = static_cast<char*>(data);
  while (bytes > 0) {
    const ssize_t some = ::recv(socket, to, bytes, 0);
    if (some < 0 && errno == EINTR) continue;
    if (some <= 0) return false;
    to += some;
    bytes -= static_cast<std::size_t>(some);
  }
  return true;
}

bool send_text(int socket, const std::string& text) {
  const auto size = static_cast<std::uint32_t>(text.size());
  return send_all(socket, &size, sizeof size) && send_all(socket, text.data(), text.size());
}

bool receive_text(int socket, std::string& text) {
  std::uint32_t size = 0;
  if (!receive_all(socket, &size, sizeof size) || size > kMaxText) return false;
  text.resize(size);
  return receive_all(socket, text.data(), size);
}

}  // namespace stepcast
