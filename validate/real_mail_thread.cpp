// The thread of RealMail, that carries letters.
#include <pthread.h>

#include <algorithm>

#include "validate/prompt_thread.hpp"
#include "validate/real_mail.hpp"

namespace stepcast {
namespace {

/// Tag of a letter that says that the oldest unconfirmed one has arrived.
constexpr int kArrived = -2000;

}  // namespace

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
            give_back(std::exchange(letter.payload, {}));
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
