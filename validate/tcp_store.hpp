#pragma once

#include "validate/store.hpp"

namespace stepcast {

/// The store of "tcp:ADDRESS:PORT" (store.hpp). Messages are lengths and bytes: a client sends 'p', rank, key
/// and value, or 'g', rank and key, and gets 'v' and the value or 't' where the time is over.
std::unique_ptr<Store> open_tcp_store(const std::string& where, int rank, double seconds);

/// "rank 2 left no listener at tcp:10.0.0.1:4000 within 30 s"
std::string nothing_left(int rank, const std::string& key, const std::string& where, double seconds);

}  // namespace stepcast
