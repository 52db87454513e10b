#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "validate/completions.hpp"
#include "validate/letter.hpp"
#include "validate/transport.hpp"

namespace stepcast {

/// Messages between the programs of a real run: a thread of its own carries them over a transport of its own,
/// beside collectives. What is sent is copied, so that the sender may go on computing, and leaves while it is
/// being copied; what comes goes straight to who waits for it, else it is kept until somebody asks.
class RealMail {
 public:
  /// @param beat  counted up at least once a second, 0 when it carries no more; may be null
  explicit RealMail(Transport& transport, std::atomic<std::uint64_t>* beat = nullptr);
  RealMail(const RealMail&) = delete;
  ~RealMail();

  /// Forgets what has come, and from now on what was sent before the other ranks' call of this.
  void begin(int run, Completions& completions);

  /// Called on the thread that carries, with every message whose payload travels apart, before anybody who
  /// waits for it is told. Set before any is sent.
  void tell_parcels(std::function<void(const Message&)> told) { parcel_announced_ = std::move(told); }

  /// Nobody waits any more, and what was waited for may be gone.
  void end();

  /// Posts `operation` when all has arrived.
  void send(int rank, const Message& message, std::span<const float> payload, Pending operation);

  /// Posts `operation`, with the message, when one of this tag has come from the role (kAnyone: from any).
  void receive(int tag, int role, Pending operation, MailTarget target);

 private:
  std::vector<float> room_for(std::int64_t floats);
  void give_back(std::vector<float> room);
  void forget_wishes();
  void run();
  void carry();
  void open(Letter& letter);
  void fail(const Pending& operation);
  bool send_more(int peer, Letter& letter);
  bool receive_more(int peer);
  void deliver(Letter letter);
  std::optional<Wish> wish_for(const Letter& complete);
  bool fits(int tag, int role, const Letter& letter) const;
  void take_in(Letter& letter);
  void confirm(int peer, int run);
  void confirmed(int peer);
  void hand_over(const Wish& wish, Letter& letter);

  Transport& transport_;
  std::atomic<std::uint64_t>* beat_;
  std::mutex mutex_;  ///< of all below
  std::vector<std::deque<Letter>> outgoing_;
  std::vector<std::deque<Letter>> unconfirmed_;  ///< sent, in order, without their payload
  std::vector<Letter> incoming_;
  std::deque<Letter> letters_;
  std::deque<Wish> wishes_;
  std::vector<std::vector<float>> spare_;  ///< memory of payloads, which the system gives slowly
  Completions* completions_ = nullptr;
  int run_ = 0;
  std::atomic<bool> closing_ = false;
  std::exception_ptr broken_;
  std::function<void(const Message&)> parcel_announced_;
  std::thread thread_;  // last: it uses the others
};

}  // namespace stepcast
