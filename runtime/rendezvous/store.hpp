#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

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

using StoreClock = std::chrono::steady_clock;

constexpr std::size_t kMaxStoreKey = 256;        ///< longest key [bytes]
constexpr std::size_t kMaxStoreText = 1U << 16;  ///< longest value or token [bytes]

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

/// A request to a store: 'p' puts a value, 'g' gets one.
struct StoreRequest {
  char kind = 0;
  std::int32_t rank = -1;
  std::string key, value;
};

bool send_request(int socket, const StoreRequest& request, StoreClock::time_point end);
/// @return false for anything that is not a request: another kind, a negative rank, a key of other characters
/// than letters, digits and '-', a text that is too long, or too little within the time
bool receive_request(int socket, StoreRequest& request, StoreClock::time_point end);

/// True for equal texts. The time does not tell how many characters agree.
bool equal_tokens(const std::string& a, const std::string& b);

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
