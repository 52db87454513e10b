#include "validate/tcp_address.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>

#include "core/error.hpp"
#include "core/parse_number.hpp"

namespace stepcast {

sockaddr_in tcp_address(const std::string& where) {
  const auto colon = where.rfind(':');
  const std::string host = colon > 4 ? where.substr(4, colon - 4) : "";
  const auto port = parse_integer(where.substr(colon + 1));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  if (!port || *port < 1 || *port > 65535 || inet_pton(AF_INET, host.c_str(), &address.sin_addr) != 1) {
    throw InputError(
        fmt::format("--store: expected tcp:ADDRESS:PORT with an IPv4 address, got \"{}\"", where));
  }
  address.sin_port = htons(static_cast<std::uint16_t>(*port));
  return address;
}

}  // namespace stepcast
