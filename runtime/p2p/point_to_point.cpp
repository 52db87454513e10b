#include "runtime/p2p/point_to_point.hpp"

#include <pthread.h>

#include <algorithm>

#include "runtime/transport/progress_thread.hpp"
#include "strategies/program/worker.hpp"

namespace stepcast {
namespace {

constexpr std::int64_t kCopyChunk = 65536;   // floats that are copied before they may be sent
constexpr std::size_t kMaxFreeBuffers = 16;  // payload buffers kept for later messages

/// Tag of a message that acknowledges the oldest unacknowledged message of the receiver.
constexpr MessageTag kAcknowledgement{-2000};

}  // namespace

PointToPoint::PointToPoint(Transport& transport, std::atomic<std::uint64_t>* heartbeat)
    : transport_(transport),
      heartbeat_(heartbeat),
      outgoing_(transport.ranks()),
      unacknowledged_(transport.ranks()),
      incoming_(transport.ranks()),
      thread_([this] { run(); }) {}

PointToPoint::~PointToPoint() {
  closing_.store(true);
  transport_.wake();
  thread_.join();
}

/// The smallest free buffer of at least `floats` floats, else a new one.
std::vector<float> PointToPoint::acquire_buffer(std::int64_t floats) {
  const std::size_t count = floats;
  const auto found = std::ranges::lower_bound(free_buffers_, count, {}, &std::vector<float>::size);
  if (count == 0 || found == free_buffers_.end()) return std::vector<float>(count);
  std::vector<float> buffer = std::move(*found);
  free_buffers_.erase(found);
  return buffer;
}

/// Keeps the largest buffers: new memory of a large one is the slowest.
void PointToPoint::release_buffer(std::vector<float> buffer) {
  if (buffer.empty()) return;
  const auto after = std::ranges::upper_bound(free_buffers_, buffer.size(), {}, &std::vector<float>::size);
  free_buffers_.insert(after, std::move(buffer));
  if (free_buffers_.size() > kMaxFreeBuffers) free_buffers_.erase(free_buffers_.begin());
}

void PointToPoint::begin_run(int run, CompletionQueue& completions) {
  const std::lock_guard lock(mutex_);
  run_ = run;
  completions_ = &completions;
  unexpected_.erase(std::remove_if(unexpected_.begin(), unexpected_.end(),
                                   [&](const InFlightMessage& one) { return one.run < run; }),
                    unexpected_.end());
  cancel_posted_receives();
}

void PointToPoint::end_run() {
  const std::lock_guard lock(mutex_);
  cancel_posted_receives();
  completions_ = nullptr;
}

void PointToPoint::cancel_posted_receives() {
  posted_receives_.clear();
  for (InFlightMessage& incoming : incoming_) {  // the rest still arrives, but no operation waits for it
    if (!incoming.matched) continue;
    buffer_unexpected(incoming);
  }
}

/// Receives the rest of the payload into a buffer.
void PointToPoint::buffer_unexpected(InFlightMessage& incoming) {
  incoming.payload = acquire_buffer(incoming.floats);
  incoming.target = incoming.payload.data();
  incoming.matched = false;
}

bool PointToPoint::matches(MessageTag tag, RoleId role, const InFlightMessage& incoming) const {
  return incoming.run == run_ && incoming.envelope.tag == tag &&
         (role == kAnyone || incoming.envelope.from == role);
}

void PointToPoint::send(RankId rank, const Message& message, std::span<const float> payload,
                        Pending operation) {
  std::unique_lock lock(mutex_);
  if (error_) return fail(operation);
  InFlightMessage outgoing = outgoing_message(message, run_, payload.size());
  outgoing.payload = acquire_buffer(outgoing.floats);
  outgoing.operation = std::move(operation);
  float* const to = outgoing.payload.data();
  const auto sendable = outgoing.sendable;  // `outgoing` is removed when all of it has been sent
  outgoing_[rank].push_back(std::move(outgoing));
  lock.unlock();
  transport_.wake();
  const std::int64_t all = payload.size();
  for (std::int64_t done = 0; done < all;) {
    const std::int64_t chunk = std::min(kCopyChunk, all - done);
    std::copy_n(payload.data() + done, chunk, to + done);
    sendable->store(done += chunk);
    transport_.wake();
  }
}

void PointToPoint::receive(MessageTag tag, RoleId role, Pending operation, PayloadTarget target) {
  const std::lock_guard lock(mutex_);
  if (error_) return fail(operation);
  const PostedReceive posted{tag, role, std::move(operation), std::move(target)};
  const auto found = std::ranges::find_if(
      unexpected_, [&](const InFlightMessage& unexpected) { return matches(tag, role, unexpected); });
  if (found == unexpected_.end()) {
    posted_receives_.push_back(posted);
    return;
  }
  deliver_buffered(posted, *found);
  unexpected_.erase(found);
}

bool PointToPoint::all_answered() {
  const std::lock_guard lock(mutex_);
  return std::ranges::none_of(unexpected_, [&](const InFlightMessage& one) { return one.run == run_; }) &&
         std::ranges::all_of(posted_receives_, [](const PostedReceive& one) { return one.role == kAnyone; });
}

void PointToPoint::deliver_buffered(const PostedReceive& posted, InFlightMessage& incoming) {
  const std::span<float> target = posted.target(incoming.envelope.buffer);
  std::copy_n(incoming.payload.begin(), std::min<std::size_t>(target.size(), incoming.floats),
              target.begin());
  release_buffer(std::move(incoming.payload));
  posted.operation->message = incoming.envelope;
  completions_->post(posted.operation);
}

/// Takes out the posted receive that matches a complete message. A receive from any role gets the message
/// that is complete first: if it is matched with a message that began to arrive earlier and is still
/// incomplete, that message moves into a buffer of its own.
std::optional<PostedReceive> PointToPoint::matching_receive(const InFlightMessage& complete) {
  const auto waits = [&](const PostedReceive& one) { return matches(one.tag, one.role, complete); };
  if (const auto posted = std::ranges::find_if(posted_receives_, waits); posted != posted_receives_.end()) {
    PostedReceive found = std::move(*posted);
    posted_receives_.erase(posted);
    return found;
  }
  const auto other = std::ranges::find_if(
      incoming_, [&](const InFlightMessage& one) { return one.matched && waits(one.posted_receive); });
  if (other == incoming_.end()) return std::nullopt;
  const float* const received = other->target;
  buffer_unexpected(*other);
  std::copy_n(received, other->transferred - kHeaderFloats, other->target);
  return std::exchange(other->posted_receive, {});
}

/// Hands a complete message to its receive, or puts it into the queue of unexpected messages.
void PointToPoint::deliver(InFlightMessage incoming) {
  const std::lock_guard lock(mutex_);
  if (incoming.run < run_) return;
  if (incoming.matched) {
    incoming.posted_receive.operation->message = incoming.envelope;
    completions_->post(incoming.posted_receive.operation);
  } else if (const auto posted = matching_receive(incoming)) {
    deliver_buffered(*posted, incoming);
  } else {
    unexpected_.push_back(std::move(incoming));
  }
}

bool PointToPoint::send_more(RankId peer, InFlightMessage& outgoing) {
  if (!outgoing.can_send_more()) return false;
  const bool header_complete = outgoing.header_complete();
  const float* from = header_complete ? outgoing.payload.data() + outgoing.transferred - kHeaderFloats
                                      : outgoing.header.data() + outgoing.transferred;
  const std::int64_t until = kHeaderFloats + (header_complete ? outgoing.sendable->load() : 0);
  const std::int64_t sent = transport_.send_some(peer, from, until - outgoing.transferred);
  outgoing.transferred += sent;
  return sent > 0;
}

/// Chooses where the payload is received once the header is complete: in the memory of a matching receive,
/// else in a buffer.
void PointToPoint::on_header(InFlightMessage& incoming) {
  read_header(incoming);
  if (incoming.envelope.tag == kAcknowledgement || incoming.floats == 0) return;
  const std::lock_guard lock(mutex_);
  const auto posted = std::ranges::find_if(
      posted_receives_, [&](const PostedReceive& one) { return matches(one.tag, one.role, incoming); });
  if (posted != posted_receives_.end()) {
    const std::span<float> target = posted->target(incoming.envelope.buffer);
    incoming.matched = std::ssize(target) >= incoming.floats;
    if (incoming.matched) {
      incoming.target = target.data();
      incoming.posted_receive = std::move(*posted);
      posted_receives_.erase(posted);
      return;
    }
  }
  buffer_unexpected(incoming);
}

bool PointToPoint::receive_more(RankId peer) {
  InFlightMessage& incoming = incoming_[peer];
  const bool header_complete = incoming.header_complete();
  std::unique_lock lock(mutex_, std::defer_lock);
  if (incoming.matched) lock.lock();  // begin_run and end_run take this memory away
  float* const target = header_complete ? incoming.target + incoming.transferred - kHeaderFloats
                                        : incoming.header.data() + incoming.transferred;
  const std::int64_t wanted = kHeaderFloats + (header_complete ? incoming.floats : 0) - incoming.transferred;
  const std::int64_t got = transport_.receive_some(peer, target, wanted, OnReceive::copy);
  if (lock) lock.unlock();
  incoming.transferred += got;
  if (!header_complete && incoming.header_complete()) on_header(incoming);
  if (!incoming.complete()) return got > 0;
  if (incoming.envelope.tag == kAcknowledgement) {
    incoming = {};
    on_acknowledgement(peer);
    return true;
  }
  const int run = incoming.run;
  if (incoming.envelope.payload.number != 0 && on_payload_announced_)
    on_payload_announced_(incoming.envelope);
  deliver(std::exchange(incoming, {}));
  send_acknowledgement(peer, run);
  return true;
}

/// Queues the acknowledgement ahead of all messages except one that is partly sent.
void PointToPoint::send_acknowledgement(RankId peer, int run) {
  Message acknowledgement;
  acknowledgement.tag = kAcknowledgement;
  const std::lock_guard lock(mutex_);
  std::deque<InFlightMessage>& queue = outgoing_[peer];
  const bool begun = !queue.empty() && queue.front().transferred > 0;
  queue.insert(queue.begin() + (begun ? 1 : 0), outgoing_message(acknowledgement, run, 0));
}

void PointToPoint::on_acknowledgement(RankId peer) {
  const std::lock_guard lock(mutex_);
  std::deque<InFlightMessage>& oldest = unacknowledged_[peer];
  const InFlightMessage acknowledged = std::move(oldest.front());
  oldest.pop_front();
  if (completions_ != nullptr && acknowledged.run == run_ && acknowledged.operation)
    completions_->post(acknowledged.operation);
}

/// A broken connection ends all messages, and fails the operations that wait for one.
void PointToPoint::run() {
  pthread_setname_np(pthread_self(), "messages");
  raise_wakeup_priority();
  transport_.count_waits(heartbeat_);
  try {
    progress();
  } catch (...) {
    const std::lock_guard lock(mutex_);
    error_ = std::current_exception();
    fail_all();
  }
  if (heartbeat_ != nullptr) heartbeat_->store(0);
}

void PointToPoint::fail(const Pending& operation) {
  if (!operation || completions_ == nullptr) return;
  operation->error = error_;
  completions_->post(operation);
}

void PointToPoint::fail_all() {
  for (const PostedReceive& posted : posted_receives_) fail(posted.operation);
  for (const InFlightMessage& message : incoming_) fail(message.posted_receive.operation);
  for (const auto& queue : outgoing_) {
    for (const InFlightMessage& message : queue) fail(message.operation);
  }
  for (const auto& queue : unacknowledged_) {
    for (const InFlightMessage& message : queue) fail(message.operation);
  }
  posted_receives_.clear();
}

void PointToPoint::progress() {
  std::vector<RankId> peers;
  for (int number = 0; number < transport_.ranks(); ++number) {
    if (RankId(number) != transport_.rank()) peers.emplace_back(number);
  }
  while (!closing_.load()) {
    bool progressed = false;
    std::vector<RankId> sending_to;
    for (const RankId peer : peers) {
      progressed = progress_sends(peer, sending_to) || progressed;
      progressed = receive_more(peer) || progressed;
    }
    if (!progressed) transport_.wait(sending_to, peers);
  }
}

/// Adds the peer to `sending_to` if more can be sent to it.
bool PointToPoint::progress_sends(RankId peer, std::vector<RankId>& sending_to) {
  bool progressed = false;
  std::unique_lock lock(mutex_);
  std::deque<InFlightMessage>& queue = outgoing_[peer];
  if (queue.empty()) return false;
  InFlightMessage& outgoing = queue.front();  // stays valid: only this thread removes messages
  lock.unlock();
  progressed = send_more(peer, outgoing);
  lock.lock();
  if (outgoing.complete()) {
    if (outgoing.envelope.tag != kAcknowledgement) {
      release_buffer(std::exchange(outgoing.payload, {}));
      unacknowledged_[peer].push_back(std::move(outgoing));
    }
    queue.pop_front();
    progressed = true;
  }
  if (!queue.empty() && queue.front().can_send_more()) sending_to.push_back(peer);
  return progressed;
}

}  // namespace stepcast
