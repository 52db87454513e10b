#pragma once

#include <memory>
#include <string>

namespace stepcast {

/// Where ranks leave words for each other while they start: where they listen, NCCL's unique ids. An abstract
/// class because ranks of one machine, or of machines that share a disk, need no connection for it. Any
/// thread may call it; a call that waits keeps no other from going on.
class Store {
 public:
  virtual ~Store() = default;

  /// Leaves a value, any bytes, for the others; once for each key, which is of letters, digits and '-'.
  virtual void put(const std::string& key, const std::string& value) = 0;
  /// What that rank left there; waits for it.
  /// @throws RankLost that names the rank, where it leaves nothing in time
  virtual std::string get(int rank, const std::string& key) = 0;
};

/// "file:FOLDER", a folder that is empty at the start and that all ranks see, or "tcp:ADDRESS:PORT", where
/// rank 0 listens, for as long as it has the store open.
/// @param seconds  to wait for a value, and for rank 0
/// @throws InputError for another text, or where rank 0 cannot listen; RankLost where rank 0 is not there
std::unique_ptr<Store> open_store(const std::string& where, int rank, double seconds);

}  // namespace stepcast
