#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace stepcast {

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

}  // namespace stepcast
