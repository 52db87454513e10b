#pragma once

#include <memory>
#include <string>

namespace stepcast {

/// Key-value store that ranks use while they start, like c10d's stores: for the endpoints that they listen at
/// and for NCCL's unique ids. The class is abstract because ranks of one machine, or of machines that share a
/// disk, can use files. All methods are thread-safe, and a waiting call does not block other calls.
class Store {
 public:
  virtual ~Store() = default;

  /// Stores `value` (any bytes) under `key` for this rank. Each key is put once, and consists of letters,
  /// digits and '-'.
  /// @throws std::runtime_error if there is a value already; it is kept
  virtual void put(const std::string& key, const std::string& value) = 0;
  /// Returns the value that `rank` put under `key`; waits until it is there.
  /// @throws RankLost that names the rank, if the rank puts no value in time
  virtual std::string get(int rank, const std::string& key) = 0;
};

/// "rank 2 put no listener into the store tcp:10.0.0.1:4000 within 30 s"
std::string store_timeout_text(int rank, const std::string& key, const std::string& where, double seconds);

/// "rank 2 has put listener into the store tcp:10.0.0.1:4000 before"
std::string store_repeated_text(int rank, const std::string& key, const std::string& where);

/// Opens a rank's store.
/// @param where    "file:FOLDER", a folder that all ranks can read and that is empty at the start, or
///                 "tcp:ADDRESS:PORT", where rank 0 listens for as long as it keeps its store open; the ranks
///                 share the token in the environment variable STEPCAST_STORE_TOKEN
/// @param seconds  timeout for a value, and for the connection to rank 0
/// @throws InputError for any other text, or if rank 0 cannot listen there; RankLost if rank 0 does not
/// listen
std::unique_ptr<Store> open_store(const std::string& where, int rank, double seconds);

}  // namespace stepcast
