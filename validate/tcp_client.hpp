#pragma once

#include "validate/store.hpp"

namespace stepcast {

/// The store of "tcp:ADDRESS:PORT" as the ranks after rank 0 have it (tcp_store.hpp).
std::unique_ptr<Store> open_tcp_client(const std::string& where, int rank, double seconds);

}  // namespace stepcast
