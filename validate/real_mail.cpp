#include "validate/real_mail.hpp"

#include <algorithm>
#include <cstring>

#include "strategies/worker.hpp"

namespace stepcast {
namespace {

/// What goes before the payload, as floats.
struct Header {
  std::int64_t begin, end, floats;
  double size, value;
  std::int32_t from, tag, parts, array, run, unused;
};
static_assert(sizeof(Header) % sizeof(float) == 0);
/// Tag of a letter that says that the oldest unconfirmed one has arrived.
constexpr int kArrived = -2000;
constexpr std::int64_t kHeader = sizeof(Header) / sizeof(float);

Header header_of(const Message& message, int run, std::size_t floats) {
  return {message.buffer.elements.begin,
          message.buffer.elements.end,
          static_cast<std::int64_t>(floats),
          message.buffer.size.value,
          message.value,
          message.from,
          message.tag,
          message.parts,
          static_cast<std::int32_t>(message.buffer.array),
          run,
          0};
}

Message message_of(const Header& header) {
  Message message;
  message.from = header.from;
  message.tag = header.tag;
  message.buffer = {static_cast<Array>(header.array), {header.begin, header.end}, {header.size}};
  message.parts = header.parts;
  message.value = header.value;
  return message;
}

}  // namespace

RealMail::RealMail(Transport& transport)
    : transport_(transport),
      outgoing_(static_cast<std::size_t>(transport.ranks())),
      unconfirmed_(static_cast<std::size_t>(transport.ranks())),
      incoming_(static_cast<std::size_t>(transport.ranks())),
      thread_([this] { run(); }) {}

RealMail::~RealMail() {
  closing_.store(true);
  transport_.wake();
  thread_.join();
}

void RealMail::begin(int run, Completions& completions) {
  const std::lock_guard lock(mutex_);
  run_ = run;
  completions_ = &completions;
  letters_.erase(
      std::remove_if(letters_.begin(), letters_.end(), [&](const Letter& one) { return one.run < run; }),
      letters_.end());
  wishes_.clear();
}

void RealMail::send(int rank, const Message& message, std::span<const float> payload, Pending operation) {
  Letter letter{message, run_, {}, 0, std::move(operation)};
  const Header header = header_of(message, run_, payload.size());
  letter.payload.resize(static_cast<std::size_t>(kHeader) + payload.size());
  std::memcpy(letter.payload.data(), &header, sizeof header);
  std::copy(payload.begin(), payload.end(), letter.payload.begin() + kHeader);
  {
    const std::lock_guard lock(mutex_);
    if (broken_) return fail(letter.operation);
    outgoing_[static_cast<std::size_t>(rank)].push_back(std::move(letter));
  }
  transport_.wake();
}

void RealMail::receive(int tag, int role, Pending operation, Target target) {
  const std::lock_guard lock(mutex_);
  if (broken_) return fail(operation);
  const Wish wish{tag, role, std::move(operation), std::move(target)};
  const auto found = std::find_if(letters_.begin(), letters_.end(), [&](const Letter& letter) {
    return letter.run == run_ && letter.message.tag == tag &&
           (role == kAnyone || letter.message.from == role);
  });
  if (found == letters_.end()) {
    wishes_.push_back(wish);
    return;
  }
  hand_over(wish, *found);
  letters_.erase(found);
}

void RealMail::hand_over(const Wish& wish, Letter& letter) {
  const std::span<float> target = wish.target(letter.message.buffer);
  std::copy_n(letter.payload.begin(), std::min(target.size(), letter.payload.size()), target.begin());
  wish.operation->message = letter.message;
  completions_->post(wish.operation);
}

/// A letter that is complete: to who waits for it, else it is kept.
void RealMail::deliver(Letter letter) {
  const std::lock_guard lock(mutex_);
  if (letter.run < run_) return;
  const auto wish = std::find_if(wishes_.begin(), wishes_.end(), [&](const Wish& one) {
    return letter.run == run_ && one.tag == letter.message.tag &&
           (one.role == kAnyone || one.role == letter.message.from);
  });
  if (wish == wishes_.end()) {
    letters_.push_back(std::move(letter));
    return;
  }
  hand_over(*wish, letter);
  wishes_.erase(wish);
}

bool RealMail::send_more(int peer, Letter& letter) {
  const auto all = static_cast<std::int64_t>(letter.payload.size());
  const std::int64_t sent =
      transport_.send_some(peer, letter.payload.data() + letter.moved, all - letter.moved);
  letter.moved += sent;
  return sent > 0;
}

bool RealMail::receive_more(int peer) {
  Letter& letter = incoming_[static_cast<std::size_t>(peer)];
  if (letter.payload.empty()) letter.payload.resize(static_cast<std::size_t>(kHeader));
  const std::int64_t wanted = static_cast<std::int64_t>(letter.payload.size()) - letter.moved;
  const std::int64_t got =
      transport_.receive_some(peer, letter.payload.data() + letter.moved, wanted, Arrival::replace);
  letter.moved += got;
  if (letter.moved < static_cast<std::int64_t>(letter.payload.size())) return got > 0;
  Header header;
  std::memcpy(&header, letter.payload.data(), sizeof header);
  const auto all = static_cast<std::size_t>(kHeader + header.floats);
  if (letter.payload.size() < all) {
    letter.payload.resize(all);
    return true;
  }
  letter.message = message_of(header);
  letter.run = header.run;
  letter.payload.erase(letter.payload.begin(), letter.payload.begin() + kHeader);
  if (letter.message.tag == kArrived) {
    letter = {};
    confirmed(peer);
    return true;
  }
  const int run = letter.run;
  deliver(std::exchange(letter, {}));
  confirm(peer, run);
  return true;
}

/// Before all letters but the one that is on its way.
void RealMail::confirm(int peer, int run) {
  Letter letter;
  letter.message.tag = kArrived;
  letter.run = run;
  const Header header = header_of(letter.message, run, 0);
  letter.payload.resize(static_cast<std::size_t>(kHeader));
  std::memcpy(letter.payload.data(), &header, sizeof header);
  const std::lock_guard lock(mutex_);
  std::deque<Letter>& queue = outgoing_[static_cast<std::size_t>(peer)];
  const bool begun = !queue.empty() && queue.front().moved > 0;
  queue.insert(queue.begin() + (begun ? 1 : 0), std::move(letter));
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
  try {
    carry();
  } catch (...) {
    const std::lock_guard lock(mutex_);
    broken_ = std::current_exception();
    for (const Wish& wish : wishes_) fail(wish.operation);
    for (const auto& queue : outgoing_) {
      for (const Letter& letter : queue) fail(letter.operation);
    }
    for (const auto& queue : unconfirmed_) {
      for (const Letter& letter : queue) fail(letter.operation);
    }
    wishes_.clear();
  }
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
        if (letter.moved == static_cast<std::int64_t>(letter.payload.size())) {
          if (letter.message.tag != kArrived) {
            letter.payload.clear();
            unconfirmed_[static_cast<std::size_t>(peer)].push_back(std::move(letter));
          }
          queue.pop_front();
          moved = true;
        }
        if (!queue.empty()) sending_to.push_back(peer);
      }
      lock.unlock();
      moved = receive_more(peer) || moved;
    }
    if (!moved) transport_.wait(sending_to, everyone);
  }
}

}  // namespace stepcast
