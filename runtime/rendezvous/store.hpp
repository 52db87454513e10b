#pragma once

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

namespace stepcast {

/// Key-value store that ranks of one machine use while they start, like c10d's FileStore: for the endpoints
/// that they listen at and for NCCL's unique ids. Each value is a file in a folder that is empty at the
/// start. All methods are thread-safe.
class Store {
 public:
  /// @param seconds  timeout for a value
  /// @throws InputError if nothing can be written into the folder
  Store(std::filesystem::path folder, int rank, double seconds);

  /// Stores `value` (any bytes) under `key` for this rank. Each key is put once, and consists of letters,
  /// digits and '-'.
  /// @throws std::runtime_error if there is a value already; it is kept
  void put(const std::string& key, const std::string& value) const;
  /// Returns the value that `rank` put under `key`; waits until it is there.
  /// @throws RankLost that names the rank, if the rank puts no value in time
  std::string get(int rank, const std::string& key) const;

 private:
  std::filesystem::path file_of(int rank, const std::string& key) const;

  std::filesystem::path folder_;
  int rank_;
  double seconds_;
};

using StoreClock = std::chrono::steady_clock;

constexpr std::size_t kMaxStoreKey = 256;  ///< longest name or token that is sent [bytes]

/// Sends or receives exactly `bytes` bytes over a socket until `end`. @return false if the peer closed it, or
/// if the time is over
bool send_all(int socket, const void* data, std::size_t bytes, StoreClock::time_point end);
bool receive_all(int socket, void* data, std::size_t bytes, StoreClock::time_point end);

/// Sends or receives a text: its length (32 bits), then its bytes.
/// @return false also if a received length is above `longest`
bool send_text(int socket, std::string_view text, StoreClock::time_point end);
bool receive_text(int socket, std::string& text, std::size_t longest, StoreClock::time_point end);

/// Waits without end until a request begins or the peer closes the socket.
void wait_for_request(int socket);

/// True for equal texts. The time does not tell how many characters agree.
bool equal_tokens(const std::string& a, const std::string& b);

/// Environment variable with the token that all ranks of several machines share. It stands there and not in a
/// command line, which every user of the machine can read.
constexpr const char* kStoreToken = "STEPCAST_STORE_TOKEN";

}  // namespace stepcast
