#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "runtime/transport/progress_thread.hpp"
#include "runtime/transport/transport.hpp"
#include "strategies/program/worker.hpp"

namespace stepcast {

/// Returns the memory that the payload of a message is received into.
using PayloadTarget = std::function<std::span<float>(const Buffer&)>;

/// A receive that waits for a message, as in MPI's posted-receive queue.
struct PostedReceive {
  MessageTag tag;
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

/// Point-to-point messages between the programs of a real run, matched by tag and sending role as in MPI.
///
/// A thread of its own carries them over a transport of its own, while collectives use theirs. A send copies
/// the payload, so that the sender may go on computing, and the copied part leaves while the rest is being
/// copied. A received payload goes straight into the memory of a matching posted receive. Without one it is
/// buffered in the queue of unexpected messages until a receive asks for it. The receiver acknowledges each
/// message.
class PointToPoint {
 public:
  /// @param transport  used by nothing else; it outlives this object
  /// @param heartbeat  counter that grows at least once a second while the thread runs, and 0 after it has
  ///                   ended; may be null
  explicit PointToPoint(Transport& transport, std::atomic<std::uint64_t>* heartbeat = nullptr);
  PointToPoint(const PointToPoint&) = delete;
  ~PointToPoint();

  /// Begins run number `run`, which must be greater than that of earlier runs: drops messages and posted
  /// receives of earlier runs, and from now on drops messages that other ranks sent before they began this
  /// run.
  /// @param completions  where the operations of this run are posted; valid until `end_run`
  void begin_run(int run, CompletionQueue& completions);

  /// Sets a function that the thread calls for every message whose payload travels from device to device
  /// (DevicePayloads), before the message is delivered. Set it before any message is sent.
  void on_payload_announced(std::function<void(const Message&)> callback) {
    on_payload_announced_ = std::move(callback);
  }

  /// Cancels all posted receives, whose memory may be freed afterwards.
  void end_run();

  /// Sends a message to `rank`. Returns when the payload has been copied.
  /// @param operation  posted when the receiver has acknowledged the whole message; may be null
  void send(RankId rank, const Message& message, std::span<const float> payload, Pending operation);

  /// Posts a receive for a message with this tag from `role` (kAnyone: from any role). `operation` is posted,
  /// with the message, when the message is complete.
  /// @param target  asked for the memory of the payload when the message is matched
  void receive(MessageTag tag, RoleId role, Pending operation, PayloadTarget target);

  /// True if no message of this run waits for a receive, and no posted receive waits for a particular role: a
  /// program that serves any role has nothing left to do.
  bool all_answered();

 private:
  std::vector<float> acquire_buffer(std::int64_t floats);
  void release_buffer(std::vector<float> buffer);
  void cancel_posted_receives();
  void run();
  void progress();
  bool progress_sends(RankId peer, std::vector<RankId>& sending_to);
  void on_header(InFlightMessage& incoming);
  void fail(const Pending& operation);
  void fail_all();
  bool send_more(RankId peer, InFlightMessage& outgoing);
  bool receive_more(RankId peer);
  void deliver(InFlightMessage incoming);
  std::optional<PostedReceive> matching_receive(const InFlightMessage& complete);
  bool matches(MessageTag tag, RoleId role, const InFlightMessage& incoming) const;
  void buffer_unexpected(InFlightMessage& incoming);
  void send_acknowledgement(RankId peer, int run);
  void on_acknowledgement(RankId peer);
  void deliver_buffered(const PostedReceive& posted, InFlightMessage& incoming);

  Transport& transport_;
  std::atomic<std::uint64_t>* heartbeat_;
  std::mutex mutex_;                                       ///< guards the members below
  IdTable<RankId, std::deque<InFlightMessage>> outgoing_;  ///< per peer
  IdTable<RankId, std::deque<InFlightMessage>>
      unacknowledged_;                         ///< per peer: sent, in order, without payload
  IdTable<RankId, InFlightMessage> incoming_;  ///< per peer
  std::deque<InFlightMessage> unexpected_;     ///< complete messages that no receive has asked for
  std::deque<PostedReceive> posted_receives_;
  /// Kept, because the system is slow to map new memory; from the smallest to the largest.
  std::vector<std::vector<float>> free_buffers_;
  CompletionQueue* completions_ = nullptr;  ///< null between runs
  int run_ = 0;
  std::atomic<bool> closing_ = false;
  std::exception_ptr error_;  ///< why the thread ended early; null: it has not
  std::function<void(const Message&)> on_payload_announced_;
  std::thread thread_;  // declared last: it uses the other members
};

}  // namespace stepcast
