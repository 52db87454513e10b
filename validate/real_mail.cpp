#include "validate/real_mail.hpp"

#include <pthread.h>

#include <algorithm>
#include <cstring>

#include "strategies/worker.hpp"
#include "validate/prompt_thread.hpp"

namespace stepcast {
namespace {

/// Tag of a letter that says that the oldest unconfirmed one has arrived.
constexpr int kArrived = -2000;
constexpr std::int64_t kCopied = 65536;  // floats that are copied before they may leave
constexpr std::size_t kSpare = 16;       // payloads whose memory is kept

}  // namespace

RealMail::RealMail(Transport& transport, std::atomic<std::uint64_t>* beat)
    : transport_(transport),
      beat_(beat),
      outgoing_(static_cast<std::size_t>(transport.ranks())),
      unconfirmed_(static_cast<std::size_t>(transport.ranks())),
      incoming_(static_cast<std::size_t>(transport.ranks())),
      thread_([this] { run(); }) {}

RealMail::~RealMail() {
  closing_.store(true);
  transport_.wake();
  thread_.join();
}

/// Memory that the system has given before, where there is enough of it.
std::vector<float> RealMail::room_for(std::int64_t floats) {
  const auto count = static_cast<std::size_t>(floats);
  const auto found =
      std::find_if(spare_.begin(), spare_.end(), [&](const auto& one) { return one.size() >= count; });
  if (found == spare_.end()) return std::vector<float>(count);
  std::vector<float> room = std::move(*found);
  spare_.erase(found);
  return room;
}

void RealMail::begin(int run, Completions& completions) {
  const std::lock_guard lock(mutex_);
  run_ = run;
  completions_ = &completions;
  letters_.erase(
      std::remove_if(letters_.begin(), letters_.end(), [&](const Letter& one) { return one.run < run; }),
      letters_.end());
  forget_wishes();
}

void RealMail::end() {
  const std::lock_guard lock(mutex_);
  forget_wishes();
  completions_ = nullptr;
}

void RealMail::forget_wishes() {
  wishes_.clear();
  for (Letter& letter : incoming_) {  // nobody waits for the rest of these
    if (!letter.wished) continue;
    take_in(letter);
  }
}

/// Lets the rest of it go into memory of its own.
void RealMail::take_in(Letter& letter) {
  letter.payload = room_for(letter.floats);
  letter.into = letter.payload.data();
  letter.wished = false;
}

bool RealMail::fits(int tag, int role, const Letter& letter) const {
  return letter.run == run_ && letter.message.tag == tag && (role == kAnyone || letter.message.from == role);
}

void RealMail::send(int rank, const Message& message, std::span<const float> payload, Pending operation) {
  std::unique_lock lock(mutex_);
  if (broken_) return fail(operation);
  Letter letter = letter_of(message, run_, static_cast<std::int64_t>(payload.size()));
  letter.payload = room_for(letter.floats);
  letter.operation = std::move(operation);
  float* const to = letter.payload.data();
  const auto copied = letter.copied;  // the letter is gone when all of it has left
  outgoing_[static_cast<std::size_t>(rank)].push_back(std::move(letter));
  lock.unlock();
  transport_.wake();
  const auto all = static_cast<std::int64_t>(payload.size());
  for (std::int64_t done = 0; done < all;) {
    const std::int64_t piece = std::min(kCopied, all - done);
    std::copy_n(payload.data() + done, piece, to + done);
    copied->store(done += piece);
    transport_.wake();
  }
}

void RealMail::receive(int tag, int role, Pending operation, MailTarget target) {
  const std::lock_guard lock(mutex_);
  if (broken_) return fail(operation);
  const Wish wish{tag, role, std::move(operation), std::move(target)};
  const auto found =
      std::ranges::find_if(letters_, [&](const Letter& letter) { return fits(tag, role, letter); });
  if (found == letters_.end()) {
    wishes_.push_back(wish);
    return;
  }
  hand_over(wish, *found);
  letters_.erase(found);
}

void RealMail::hand_over(const Wish& wish, Letter& letter) {
  const std::span<float> target = wish.target(letter.message.buffer);
  std::copy_n(letter.payload.begin(), std::min(target.size(), static_cast<std::size_t>(letter.floats)),
              target.begin());
  if (spare_.size() < kSpare) spare_.push_back(std::move(letter.payload));
  wish.operation->message = letter.message;
  completions_->post(wish.operation);
}

/// Of who waits for such a letter. Who waits for anyone's gets the one that is first complete: one that began
/// to come before it goes into memory of its own from here on.
std::optional<Wish> RealMail::wish_for(const Letter& complete) {
  const auto waits = [&](const Wish& one) { return fits(one.tag, one.role, complete); };
  if (const auto wish = std::ranges::find_if(wishes_, waits); wish != wishes_.end()) {
    Wish found = std::move(*wish);
    wishes_.erase(wish);
    return found;
  }
  const auto other =
      std::ranges::find_if(incoming_, [&](const Letter& one) { return one.wished && waits(one.wish); });
  if (other == incoming_.end()) return std::nullopt;
  const float* const come = other->into;
  take_in(*other);
  std::copy_n(come, other->moved - kLetterHeader, other->into);
  return std::exchange(other->wish, {});
}

/// A letter that is complete: to who waits for it, else it is kept.
void RealMail::deliver(Letter letter) {
  const std::lock_guard lock(mutex_);
  if (letter.run < run_) return;
  if (letter.wished) {
    letter.wish.operation->message = letter.message;
    completions_->post(letter.wish.operation);
  } else if (const auto wish = wish_for(letter)) {
    hand_over(*wish, letter);
  } else {
    letters_.push_back(std::move(letter));
  }
}

bool RealMail::send_more(int peer, Letter& letter) {
  if (!letter.ready()) return false;
  const bool opened = letter.opened();
  const float* from =
      opened ? letter.payload.data() + letter.moved - kLetterHeader : letter.header.data() + letter.moved;
  const std::int64_t until = kLetterHeader + (opened ? letter.copied->load() : 0);
  const std::int64_t sent = transport_.send_some(peer, from, until - letter.moved);
  letter.moved += sent;
  return sent > 0;
}

/// Its header has come: the rest goes to who waits for it, else into memory of its own.
void RealMail::open(Letter& letter) {
  read_header(letter);
  if (letter.message.tag == kArrived || letter.floats == 0) return;
  const std::lock_guard lock(mutex_);
  const auto wish =
      std::ranges::find_if(wishes_, [&](const Wish& one) { return fits(one.tag, one.role, letter); });
  if (wish != wishes_.end()) {
    const std::span<float> target = wish->target(letter.message.buffer);
    letter.wished = static_cast<std::int64_t>(target.size()) >= letter.floats;
    if (letter.wished) {
      letter.into = target.data();
      letter.wish = std::move(*wish);
      wishes_.erase(wish);
      return;
    }
  }
  take_in(letter);
}

bool RealMail::receive_more(int peer) {
  Letter& letter = incoming_[static_cast<std::size_t>(peer)];
  const bool opened = letter.opened();
  std::unique_lock lock(mutex_, std::defer_lock);
  if (letter.wished) lock.lock();  // `begin` takes the memory away
  float* const into =
      opened ? letter.into + letter.moved - kLetterHeader : letter.header.data() + letter.moved;
  const std::int64_t wanted = kLetterHeader + (opened ? letter.floats : 0) - letter.moved;
  const std::int64_t got = transport_.receive_some(peer, into, wanted, Arrival::replace);
  if (lock) lock.unlock();
  letter.moved += got;
  if (!opened && letter.opened()) open(letter);
  if (!letter.complete()) return got > 0;
  if (letter.message.tag == kArrived) {
    letter = {};
    confirmed(peer);
    return true;
  }
  const int run = letter.run;
  if (letter.message.parcel.number != 0 && parcel_announced_) parcel_announced_(letter.message);
  deliver(std::exchange(letter, {}));
  confirm(peer, run);
  return true;
}

/// Before all letters but the one that is on its way.
void RealMail::confirm(int peer, int run) {
  Message arrived;
  arrived.tag = kArrived;
  const std::lock_guard lock(mutex_);
  std::deque<Letter>& queue = outgoing_[static_cast<std::size_t>(peer)];
  const bool begun = !queue.empty() && queue.front().moved > 0;
  queue.insert(queue.begin() + (begun ? 1 : 0), letter_of(arrived, run, 0));
}

void RealMail::confirmed(int peer) {
  const std::lock_guard lock(mutex_);
  std::deque<Letter>& oldest = unconfirmed_[static_cast<std::size_t>(peer)];
  const Letter letter = std::move(oldest.front());
  oldest.pop_front();
  if (completions_ != nullptr && letter.run == run_ && letter.operation) completions_->post(letter.operation);
}

/// A connection that breaks ends all mail; who waits for some is told.
void RealMail::run() {
  pthread_setname_np(pthread_self(), "messages");
  be_prompt();
  transport_.count_waits(beat_);
  try {
    carry();
  } catch (...) {
    const std::lock_guard lock(mutex_);
    broken_ = std::current_exception();
    for (const Wish& wish : wishes_) fail(wish.operation);
    for (const Letter& letter : incoming_) fail(letter.wish.operation);
    for (const auto& queue : outgoing_) {
      for (const Letter& letter : queue) fail(letter.operation);
    }
    for (const auto& queue : unconfirmed_) {
      for (const Letter& letter : queue) fail(letter.operation);
    }
    wishes_.clear();
  }
  if (beat_ != nullptr) beat_->store(0);
}

void RealMail::fail(const Pending& operation) {
  if (!operation || completions_ == nullptr) return;
  operation->error = broken_;
  completions_->post(operation);
}

void RealMail::carry() {
  std::vector<int> everyone;
  for (int peer = 0; peer < transport_.ranks(); ++peer) {
    if (peer != transport_.rank()) everyone.push_back(peer);
  }
  while (!closing_.load()) {
    bool moved = false;
    std::vector<int> sending_to;
    for (const int peer : everyone) {
      std::unique_lock lock(mutex_);
      std::deque<Letter>& queue = outgoing_[static_cast<std::size_t>(peer)];
      if (!queue.empty()) {
        Letter& letter = queue.front();  // references stay good: only this thread takes letters out
        lock.unlock();
        moved = send_more(peer, letter) || moved;
        lock.lock();
        if (letter.complete()) {
          if (letter.message.tag != kArrived) {
            if (spare_.size() < kSpare) spare_.push_back(std::move(letter.payload));
            letter.payload = {};
            unconfirmed_[static_cast<std::size_t>(peer)].push_back(std::move(letter));
          }
          queue.pop_front();
          moved = true;
        }
        if (!queue.empty() && queue.front().ready()) sending_to.push_back(peer);
      }
      lock.unlock();
      moved = receive_more(peer) || moved;
    }
    if (!moved) transport_.wait(sending_to, everyone);
  }
}

}  // namespace stepcast
