#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "strategies/program/worker.hpp"

namespace stepcast {

/// Returns the memory that the payload of a message is received into.
using PayloadTarget = std::function<std::span<float>(const Buffer&)>;

/// A receive that waits for a message, as in MPI's posted-receive queue.
struct PostedReceive {
  int tag = 0;
  RoleId role;  ///< sending role; kAnyone: any role
  Pending operation;
  PayloadTarget target;
};

constexpr std::int64_t kHeaderFloats = 26;  ///< floats of the header, which precede the payload

/// A message that is being sent or received: its envelope, its payload, and how far the transfer is.
struct InFlightMessage {
  Message envelope;
  int run = 0;  ///< number of the run that sent it
  std::array<float, kHeaderFloats> header{};
  std::int64_t floats = 0;     ///< floats of the payload
  std::vector<float> payload;  ///< buffer of at least `floats` floats; empty while `target` is the receiver's
  float* target = nullptr;     ///< incoming: where the payload is received
  bool matched = false;        ///< incoming: the payload goes straight into the memory of `posted_receive`
  PostedReceive posted_receive;  ///< incoming, if `matched`
  std::int64_t transferred = 0;  ///< floats of header and payload that have been sent or received
  /// Outgoing: floats of the payload that have been copied and may be sent.
  std::shared_ptr<std::atomic<std::int64_t>> sendable;
  Pending operation;  ///< outgoing: posted when the receiver has acknowledged the message; may be null

  bool header_complete() const { return transferred >= kHeaderFloats; }
  bool complete() const { return transferred == kHeaderFloats + floats; }
  /// Outgoing: some floats can be sent now.
  bool can_send_more() const { return !header_complete() || transferred - kHeaderFloats < sendable->load(); }
};

/// A message to be sent, with its header filled in and without its payload.
InFlightMessage outgoing_message(const Message& envelope, int run, std::int64_t floats);
/// Fills in envelope, run and floats of an incoming message from its header.
void read_header(InFlightMessage& incoming);

}  // namespace stepcast
