#include "validate/launch/frame.hpp"

#include <algorithm>
#include <cctype>
#include <string_view>

namespace stepcast {

bool send_frame(int socket, const Frame& frame, StoreClock::time_point end) {
  return send_all(socket, &frame.kind, 1, end) && send_text(socket, frame.name, end) &&
         send_text(socket, frame.body, end);
}

bool receive_frame(int socket, Frame& frame, StoreClock::time_point end) {
  return receive_all(socket, &frame.kind, 1, end) && receive_text(socket, frame.name, kMaxStoreKey, end) &&
         receive_text(socket, frame.body, kMaxFrame, end);
}

bool is_plain_file_name(const std::string& name) {
  std::string_view own = name;
  if (own.starts_with("store/")) own.remove_prefix(6);
  return !own.empty() && own.front() != '.' && std::ranges::all_of(own, [](unsigned char c) {
    return (c < 128 && std::isalnum(c) != 0) || c == '.' || c == '-' || c == '_';
  });
}

}  // namespace stepcast
