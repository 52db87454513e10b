#include "validate/real_mail.hpp"

#include <algorithm>

#include "strategies/worker.hpp"

namespace stepcast {
namespace {

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

void RealMail::give_back(std::vector<float> room) {
  if (spare_.size() < kSpare) spare_.push_back(std::move(room));
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
  give_back(std::move(letter.payload));
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

}  // namespace stepcast
