#include "runtime/transport/progress_thread.hpp"

#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>

namespace stepcast {

namespace {

/// The kernel's `struct sched_attr`, first version. The kernel's header (linux/sched/types.h) cannot be
/// included together with <sched.h>, because both define `sched_param`. Source: man 2 sched_setattr.
struct SchedulingAttributes {
  std::uint32_t size = 0, policy = 0;
  std::uint64_t flags = 0;
  std::int32_t nice = 0;
  std::uint32_t priority = 0;
  std::uint64_t runtime = 0, deadline = 0, period = 0;  ///< [ns]
};
static_assert(sizeof(SchedulingAttributes) == 48);

}  // namespace

void set_time_slice(double seconds) {
  SchedulingAttributes attributes;
  if (syscall(SYS_sched_getattr, 0, &attributes, sizeof attributes, 0) != 0) return;
  attributes.runtime = std::lround(1e9 * seconds);
  syscall(SYS_sched_setattr, 0, &attributes, 0);
}

/// The scheduler runs a woken thread with a shorter slice first. Source: kernel/sched/fair.c, PREEMPT_SHORT.
void raise_wakeup_priority() {
  constexpr double kSlice = 1e-4;  // the shortest that the kernel allows [s]
  set_time_slice(kSlice);
}

void PollingPolicy::yield_to_loads() const {
  if (pending_loads.load(std::memory_order_relaxed) > 0) sched_yield();
}

AwakeCores::AwakeCores() : stop_(std::make_shared<std::atomic<bool>>(false)) {
  const unsigned cores = std::thread::hardware_concurrency();
  for (unsigned i = 0; i < cores; ++i) {
    std::thread([stop = stop_] {
      const sched_param none{};
      // At normal priority the thread would take cores from the ranks.
      if (sched_setscheduler(0, SCHED_IDLE, &none) != 0) return;
      while (!stop->load(std::memory_order_relaxed)) {
      }
    }).detach();
  }
}

AwakeCores::~AwakeCores() {
  *stop_ = true;
}

bool CompletionQueue::empty() {
  const std::lock_guard lock(mutex_);
  return completed_.empty();
}

void CompletionQueue::post(Pending operation) {
  {
    const std::lock_guard lock(mutex_);
    completed_.push_back(std::move(operation));
    // The program goes on at once and needs the core of the posting thread.
    if (polling_ != nullptr && program_waits_) polling_->program_computes.store(true);
  }
  posted_.notify_one();
}

/// @return whether an operation has completed
bool CompletionQueue::wait(std::unique_lock<std::mutex>& lock) {
  using namespace std::chrono_literals;
  const bool computed = polling_ != nullptr && polling_->program_computes.exchange(false);
  program_waits_ = computed;
  if (on_wait_) on_wait_();
  const bool posted = posted_.wait_for(lock, 1s, [this] { return !completed_.empty(); });
  program_waits_ = false;
  if (polling_ != nullptr) polling_->program_computes.store(computed);
  return posted;
}

Pending CompletionQueue::next() {
  std::unique_lock lock(mutex_);
  if (completed_.empty() && !wait(lock)) return nullptr;
  Pending operation = std::move(completed_.front());
  completed_.pop_front();
  return operation;
}

void CompletionQueue::await_next() {
  Pending finished;
  while (finished == nullptr) finished = next();
  if (finished->error) std::rethrow_exception(finished->error);
}

ProgressThread::ProgressThread(std::atomic<std::uint64_t>* heartbeat, PollingPolicy* polling)
    : heartbeat_(heartbeat), polling_(polling), thread_([this] { run(); }) {}

ProgressThread::~ProgressThread() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  submitted_.notify_one();
  thread_.join();
}

void ProgressThread::submit(std::function<void()> work) {
  if (polling_ != nullptr) ++polling_->pending_collectives;
  {
    const std::lock_guard lock(mutex_);
    queue_.push_back(std::move(work));
  }
  submitted_.notify_one();
}

void ProgressThread::discard() {
  const std::lock_guard lock(mutex_);
  if (polling_ != nullptr) polling_->pending_collectives -= static_cast<int>(queue_.size());
  queue_.clear();
}

void ProgressThread::run() {
  using namespace std::chrono_literals;
  pthread_setname_np(pthread_self(), "collectives");
  raise_wakeup_priority();
  std::unique_lock lock(mutex_);
  while (true) {
    if (heartbeat_ != nullptr) heartbeat_->fetch_add(1, std::memory_order_relaxed);
    if (!submitted_.wait_for(lock, 1s, [this] { return closing_ || !queue_.empty(); })) continue;
    if (queue_.empty()) break;
    const std::function<void()> next = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    next();
    if (polling_ != nullptr) --polling_->pending_collectives;
    lock.lock();
  }
  if (heartbeat_ != nullptr) heartbeat_->store(0);
}

}  // namespace stepcast
