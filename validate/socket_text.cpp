#include "validate/socket_text.hpp"

#include <sys/socket.h>

#include <cerrno>
#include <cstdint>

namespace stepcast {
namespace {

constexpr std::uint32_t kLongest = 1 << 16;

}  // namespace

bool sent(int socket, const void* data, std::size_t bytes) {
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

bool received(int socket, void* data, std::size_t bytes) {
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

bool sent_text(int socket, const std::string& text) {
  const auto size = static_cast<std::uint32_t>(text.size());
  return sent(socket, &size, sizeof size) && sent(socket, text.data(), text.size());
}

bool received_text(int socket, std::string& text) {
  std::uint32_t size = 0;
  if (!received(socket, &size, sizeof size) || size > kLongest) return false;
  text.resize(size);
  return received(socket, text.data(), size);
}

}  // namespace stepcast
