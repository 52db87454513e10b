#include "validate/communication_thread.hpp"

#include <pthread.h>

#include <chrono>

#include "validate/prompt_thread.hpp"

namespace stepcast {

CommunicationThread::CommunicationThread(std::atomic<std::uint64_t>* beat, Leisure* leisure)
    : beat_(beat), leisure_(leisure), thread_([this] { run(); }) {}

CommunicationThread::~CommunicationThread() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  there_is_work_.notify_one();
  thread_.join();
}

void CommunicationThread::submit(std::function<void()> work) {
  if (leisure_ != nullptr) ++leisure_->collectives;
  {
    const std::lock_guard lock(mutex_);
    work_.push_back(std::move(work));
  }
  there_is_work_.notify_one();
}

void CommunicationThread::run() {
  using namespace std::chrono_literals;
  pthread_setname_np(pthread_self(), "collectives");
  be_prompt();
  std::unique_lock lock(mutex_);
  while (true) {
    if (beat_ != nullptr) beat_->fetch_add(1, std::memory_order_relaxed);
    if (!there_is_work_.wait_for(lock, 1s, [this] { return closing_ || !work_.empty(); })) continue;
    if (work_.empty()) break;
    const std::function<void()> next = std::move(work_.front());
    work_.pop_front();
    lock.unlock();
    next();
    if (leisure_ != nullptr) --leisure_->collectives;
    lock.lock();
  }
  if (beat_ != nullptr) beat_->store(0);
}

}  // namespace stepcast
