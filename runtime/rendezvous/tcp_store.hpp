#pragma once

#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "runtime/rendezvous/store.hpp"

namespace stepcast {

/// Opens the store "tcp:ADDRESS:PORT" (open_store.hpp): rank 0 serves it, other ranks connect. A client sends
/// 'p', rank, key and value to put a value, or 'g', rank and key to get one. The reply to 'g' is 'v' and the
/// value, or 't' after the timeout. Texts are sent as their length and their bytes.
std::unique_ptr<Store> open_tcp_store(const std::string& where, int rank, double seconds);

}  // namespace stepcast
