#pragma once

#include <memory>
#include <string>

#include "runtime/rendezvous/store.hpp"

namespace stepcast {

/// Opens a rank's store.
/// @param where    "file:FOLDER", a folder that all ranks can read and that is empty at the start, or
///                 "tcp:ADDRESS:PORT", where rank 0 listens for as long as it keeps its store open; the ranks
///                 share the token in the environment variable STEPCAST_STORE_TOKEN
/// @param seconds  timeout for a value, and for the connection to rank 0
/// @throws InputError for any other text, or if rank 0 cannot listen there; RankLost if rank 0 does not
/// listen
std::unique_ptr<Store> open_store(const std::string& where, int rank, double seconds);

}  // namespace stepcast
