#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "strategies/worker.hpp"

namespace stepcast {

/// Where the payload of a message goes.
using MailTarget = std::function<std::span<float>(const Buffer&)>;

/// Somebody waits for a message of this tag and role.
struct Wish {
  int tag = 0, role = 0;
  Pending operation;
  MailTarget target;
};

constexpr std::int64_t kLetterHeader = 24;  ///< floats before the payload

/// A message on its way, out or in.
struct Letter {
  Message message;
  int run = 0;
  std::array<float, kLetterHeader> header{};
  std::int64_t floats = 0;     ///< of the payload
  std::vector<float> payload;  ///< at least so many, or none where they go to `into`
  float* into = nullptr;       ///< where what comes goes
  bool wished = false;         ///< straight to who waits for it: `wish`
  Wish wish;
  std::int64_t moved = 0;  ///< floats of header and payload that have been sent or have come
  std::shared_ptr<std::atomic<std::int64_t>> copied;  ///< floats of the payload that may be sent
  Pending operation;

  bool opened() const { return moved >= kLetterHeader; }
  bool complete() const { return moved == kLetterHeader + floats; }
  /// Of one that is sent: there is something that may leave.
  bool ready() const { return !opened() || moved - kLetterHeader < copied->load(); }
};

/// One to be sent, its header filled in and its payload not.
Letter letter_of(const Message& message, int run, std::int64_t floats);
/// Of one that comes: message, run and floats from the header.
void read_header(Letter& letter);

}  // namespace stepcast
