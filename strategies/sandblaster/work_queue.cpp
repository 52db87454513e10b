#include "strategies/sandblaster/work_queue.hpp"

#include <utility>

namespace stepcast {

WorkQueue::WorkQueue(const Options& options)
    : options_(options), replicas_(static_cast<std::size_t>(options.replicas)) {}

void WorkQueue::begin_batch() {
  ++batch_;
  given_ = finished_ = copied_ = 0;
  copies_.assign(static_cast<std::size_t>(options_.tasks), 0);
  done_.assign(static_cast<std::size_t>(options_.tasks), false);
}

void WorkQueue::done(int number) {
  Replica& replica = replicas_[static_cast<std::size_t>(number)];
  const Order order = replica.order;
  replica.order = {};
  if (order.kind == Order::Kind::read) replica.batch = replica.given_batch;
  if (order.kind == Order::Kind::send) {
    unsent_ -= replica.accrued;
    replica.accrued = 0;
  }
  if (order.kind != Order::Kind::compute) return;
  const auto task = static_cast<std::size_t>(order.task);
  if (replica.given_batch != batch_ || done_[task]) {
    ++wasted_;
    return;
  }
  done_[task] = true;
  ++finished_;
  replica.counted = true;
  ++replica.accrued;
  ++unsent_;
}

/// @returns a task that no replica has, else one that another replica has not finished; -1: none
int WorkQueue::open_task() {
  if (given_ < options_.tasks) return given_++;
  if (!options_.backup_tasks) return -1;
  while (copied_ < options_.tasks &&
         (done_[static_cast<std::size_t>(copied_)] || copies_[static_cast<std::size_t>(copied_)] > 1))
    ++copied_;
  return copied_ < options_.tasks ? copied_ : -1;
}

Order WorkQueue::next(int number) {
  Replica& replica = replicas_[static_cast<std::size_t>(number)];
  Order& order = replica.order;
  const bool work_left = given_ < options_.tasks || (options_.backup_tasks && finished_ < options_.tasks);
  if (replica.accrued >= options_.send_every) {
    order = {Order::Kind::send};
  } else if (replica.batch < batch_ && work_left) {
    order = {Order::Kind::read};
  } else if (const int task = open_task(); task >= 0) {
    ++copies_[static_cast<std::size_t>(task)];
    order = {.kind = Order::Kind::compute, .task = task};
  } else {
    order = {replica.accrued > 0 ? Order::Kind::send : Order::Kind::wait};
  }
  order.counted = std::exchange(replica.counted, false);
  order.batch = replica.given_batch = batch_;
  return order;
}

}  // namespace stepcast
