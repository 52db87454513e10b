#include "validate/completions.hpp"

#include <chrono>

namespace stepcast {

void Completions::post(Pending operation) {
  {
    const std::lock_guard lock(mutex_);
    done_.push_back(std::move(operation));
    if (leisure_ != nullptr && waits_) leisure_->computes.store(true);  // it needs the core of who posts
  }
  posted_.notify_one();
}

/// @return whether there is one
bool Completions::wait(std::unique_lock<std::mutex>& lock) {
  using namespace std::chrono_literals;
  const bool computed = leisure_ != nullptr && leisure_->computes.exchange(false);
  waits_ = computed;
  if (begins_to_wait_) begins_to_wait_();
  const bool posted = posted_.wait_for(lock, 1s, [this] { return !done_.empty(); });
  waits_ = false;
  if (leisure_ != nullptr) leisure_->computes.store(computed);
  return posted;
}

Pending Completions::next() {
  std::unique_lock lock(mutex_);
  if (done_.empty() && !wait(lock)) return nullptr;
  Pending operation = std::move(done_.front());
  done_.pop_front();
  return operation;
}

}  // namespace stepcast
