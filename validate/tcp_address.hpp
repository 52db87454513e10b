#pragma once

#include <netinet/in.h>

#include <string>

namespace stepcast {

/// Of a store "tcp:127.0.0.1:4000". @throws InputError for another text
sockaddr_in tcp_address(const std::string& where);

}  // namespace stepcast
