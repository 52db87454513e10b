#pragma once

#include <memory>
#include <string>

#include "runtime/rendezvous/store.hpp"

namespace stepcast {

/// Environment variable with the token that all ranks of a TCP store share. It stands there and not in a
/// command line, which every user of the machine can read.
constexpr const char* kStoreToken = "STEPCAST_STORE_TOKEN";

/// Opens the store "tcp:ADDRESS:PORT" (open_store): rank 0 serves it, other ranks connect.
///
/// A client sends the token, and 'w' welcomes it. Then it sends 'p', rank, key and value to put a value, or
/// 'g', rank and key to get one. The reply to 'p' is 'v', or 'd' if there is a value already. The reply to
/// 'g' is 'v' and the value, or 't' after the timeout. Texts are sent as their length and their bytes.
///
/// A connection without the token, or one that sends anything else, is closed within a second. The token
/// keeps other jobs and strangers out; it is sent as it is, so the network must not be one that others read.
/// @throws InputError if there is no token
std::unique_ptr<Store> open_tcp_store(const std::string& where, int rank, double seconds);

}  // namespace stepcast
