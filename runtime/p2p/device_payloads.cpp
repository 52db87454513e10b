#include "runtime/p2p/device_payloads.hpp"

#include <future>

namespace stepcast {
DevicePayloads::~DevicePayloads() = default;

DevicePayloads::ChannelEnd& DevicePayloads::channel_end(RankId from, RankId to) {
  const std::lock_guard lock(mutex_);
  auto& end = ends_[{from, to}];
  if (end == nullptr) end = std::make_unique<ChannelEnd>();
  return *end;
}

DeviceChannel& DevicePayloads::channel_of(ChannelEnd& end, RankId from, RankId to) {
  if (end.channel == nullptr) end.channel = open_(from, to);
  return *end.channel;
}

void DevicePayloads::open_channels(const std::vector<std::pair<RankId, RankId>>& pairs) {
  for (const auto& [from, to] : pairs) {
    if (from != rank_ && to != rank_) continue;
    ChannelEnd& end = channel_end(from, to);
    std::promise<void> opened;
    end.thread.submit([this, &end, &opened, first = from, second = to] {
      try {
        channel_of(end, first, second);
        opened.set_value();
      } catch (...) {
        opened.set_exception(std::current_exception());
      }
    });
    opened.get_future().get();
  }
}

void DevicePayloads::begin_run(CompletionQueue& completions) {
  const std::lock_guard lock(mutex_);
  completions_ = &completions;
  ++run_;
  for (auto one = arrivals_.begin(); one != arrivals_.end();) {
    one->second.waiting = nullptr;
    if (one->second.complete) add_free(std::move(one->second.buffer));
    one = one->second.complete || one->second.error ? arrivals_.erase(one) : std::next(one);
  }
}

void DevicePayloads::end_runs() {
  const std::lock_guard lock(mutex_);
  completions_ = nullptr;
  ++run_;  // sends that still run belong to an earlier run
  for (auto& [number, one] : arrivals_) one.waiting = nullptr;
}

/// The smallest free buffer that is large enough and at most twice as large as needed, else a new one.
DevicePayloads::PayloadBuffer DevicePayloads::acquire(std::int64_t floats) {
  {
    const std::lock_guard lock(mutex_);
    auto best = free_buffers_.end();
    for (auto one = free_buffers_.begin(); one != free_buffers_.end(); ++one) {
      const bool fits = one->floats >= floats && one->floats <= 2 * floats;
      if (fits && (best == free_buffers_.end() || one->floats < best->floats)) best = one;
    }
    if (best != free_buffers_.end()) {
      PayloadBuffer found = std::move(*best);
      free_buffers_.erase(best);
      return found;
    }
  }
  PayloadBuffer created{memory_.allocate(floats), floats};
  created.read = memory_.record_event();  // the device zeroes new memory first
  return created;
}

void DevicePayloads::add_free(PayloadBuffer buffer) {
  free_buffers_.push_back(std::move(buffer));
}

PayloadId DevicePayloads::send(RankId rank, const PayloadBuffer& buffer, std::int64_t floats,
                               Pending operation) {
  ChannelEnd& end = channel_end(rank_, rank);
  const DeviceMemory::Event packed = memory_.record_event();
  const std::lock_guard lock(mutex_);
  const PayloadId payload{++sent_ * ranks_ + rank_.value, floats};
  end.thread.submit([this, &end, rank, buffer, floats, packed, operation = std::move(operation), run = run_] {
    try {
      channel_of(end, rank_, rank).send(buffer.memory.get(), floats, packed);
    } catch (...) {
      operation->error = std::current_exception();
    }
    const std::lock_guard inner(mutex_);
    add_free(buffer);
    if (run == run_) completions_->post(operation);
  });
  return payload;
}

void DevicePayloads::post_receive(const PayloadId& payload) {
  const RankId from(payload.number % ranks_);
  ChannelEnd& end = channel_end(from, rank_);
  const PayloadBuffer buffer = acquire(payload.floats);
  const std::lock_guard lock(mutex_);
  arrivals_[payload.number] = {.buffer = buffer, .run = run_};
  end.thread.submit([this, &end, from, buffer, payload] {
    try {
      channel_of(end, from, rank_).receive(buffer.memory.get(), payload.floats, buffer.read);
      on_arrival(payload.number, nullptr);
    } catch (...) {
      on_arrival(payload.number, std::current_exception());
    }
  });
}

void DevicePayloads::on_arrival(std::int64_t number, const std::exception_ptr& error) {
  const std::lock_guard lock(mutex_);
  Arrival& one = arrivals_.at(number);
  one.complete = error == nullptr;
  one.error = error;
  if (one.waiting != nullptr) completions_->post(std::exchange(one.waiting, nullptr));
  if (one.run == run_) return;
  if (one.complete) add_free(std::move(one.buffer));  // of an earlier run: no program takes it
  arrivals_.erase(number);
}

bool DevicePayloads::defer_until_arrival(const Pending& operation) {
  const std::int64_t number = operation->message.payload.number;
  if (number == 0) return false;
  const std::lock_guard lock(mutex_);
  const auto found = arrivals_.find(number);
  if (found == arrivals_.end()) return false;  // of an earlier run
  if (!found->second.complete && !found->second.error) {
    found->second.waiting = operation;
    return true;
  }
  operation->error = found->second.error;
  return false;
}

DevicePayloads::PayloadBuffer DevicePayloads::take_arrived(const PayloadId& payload) {
  const std::lock_guard lock(mutex_);
  const auto found = arrivals_.find(payload.number);
  PayloadBuffer buffer = std::move(found->second.buffer);
  arrivals_.erase(found);
  return buffer;
}

void DevicePayloads::release(PayloadBuffer buffer) {
  buffer.read = memory_.record_event();
  const std::lock_guard lock(mutex_);
  add_free(std::move(buffer));
}

void DevicePayloads::finish() {
  std::vector<ProgressThread*> threads;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [pair, end] : ends_) threads.push_back(&end->thread);
  }
  for (ProgressThread* thread : threads) {
    std::promise<void> through;
    thread->submit([&through] { through.set_value(); });
    through.get_future().wait();
  }
}

}  // namespace stepcast
