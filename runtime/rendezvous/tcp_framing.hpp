#pragma once

#include <netinet/in.h>

#include <cstddef>
#include <string>

namespace stepcast {

/// The address of a store such as "tcp:127.0.0.1:4000". @throws InputError for any other text
sockaddr_in tcp_address(const std::string& store);

/// Sends or receives exactly `bytes` bytes over a blocking socket. @return false if the peer closed it
bool send_all(int socket, const void* data, std::size_t bytes);
bool receive_all(int socket, void* data, std::size_t bytes);

/// Sends or receives a text of at most 64 KiB: its length (32 bits), then its bytes.
/// @return false if the peer closed the socket, or if a received length is too large
bool send_text(int socket, const std::string& text);
bool receive_text(int socket, std::string& text);

}  // namespace stepcast
