#include "validate/parcels.hpp"

#include <algorithm>
#include <future>

namespace stepcast {
Parcels::~Parcels() = default;

Parcels::End& Parcels::end_of(int from, int to) {
  const std::lock_guard lock(mutex_);
  auto& end = ends_[{from, to}];
  if (end == nullptr) end = std::make_unique<End>();
  return *end;
}

DeviceLink& Parcels::link_of(End& end, int from, int to) {
  if (end.link == nullptr) end.link = open_(from, to);
  return *end.link;
}

void Parcels::open(const std::vector<std::pair<int, int>>& pairs) {
  for (const auto& [from, to] : pairs) {
    if (from != rank_ && to != rank_) continue;
    End& end = end_of(from, to);
    std::promise<void> opened;
    end.thread.submit([this, &end, &opened, first = from, second = to] {
      try {
        link_of(end, first, second);
        opened.set_value();
      } catch (...) {
        opened.set_exception(std::current_exception());
      }
    });
    opened.get_future().get();
  }
}

void Parcels::begin(Completions& completions) {
  const std::lock_guard lock(mutex_);
  completions_ = &completions;
  ++run_;
  for (auto one = arrivals_.begin(); one != arrivals_.end();) {
    one->second.waiting = nullptr;
    if (one->second.here) keep(std::move(one->second.room));
    one = one->second.here || one->second.error ? arrivals_.erase(one) : std::next(one);
  }
}

/// The smallest that is large enough, unless most of it would lie idle.
Parcels::Room Parcels::room(std::int64_t floats) {
  {
    const std::lock_guard lock(mutex_);
    auto best = spare_.end();
    for (auto one = spare_.begin(); one != spare_.end(); ++one) {
      const bool fits = one->floats >= floats && one->floats <= 2 * floats;
      if (fits && (best == spare_.end() || one->floats < best->floats)) best = one;
    }
    if (best != spare_.end()) {
      Room found = std::move(*best);
      spare_.erase(best);
      return found;
    }
  }
  Room made{memory_.allocate(static_cast<std::size_t>(floats)), floats};
  made.read = memory_.mark();  // the device zeroes it first
  return made;
}

void Parcels::keep(Room room) {
  spare_.push_back(std::move(room));
}

Parcel Parcels::send(int rank, const Room& room, std::int64_t floats, Pending operation) {
  End& end = end_of(rank_, rank);
  const DeviceMemory::Mark packed = memory_.mark();
  const std::lock_guard lock(mutex_);
  const Parcel parcel{++sent_ * ranks_ + rank_, floats};
  end.thread.submit([this, &end, rank, room, floats, packed, operation = std::move(operation), run = run_] {
    try {
      link_of(end, rank_, rank).send(room.memory.get(), floats, packed);
    } catch (...) {
      operation->error = std::current_exception();
    }
    const std::lock_guard inner(mutex_);
    keep(room);
    if (run == run_) completions_->post(operation);
  });
  return parcel;
}

void Parcels::expect(const Parcel& parcel) {
  const int from = static_cast<int>(parcel.number % ranks_);
  End& end = end_of(from, rank_);
  const Room made = room(parcel.floats);
  const std::lock_guard lock(mutex_);
  arrivals_[parcel.number] = {.room = made, .run = run_};
  end.thread.submit([this, &end, from, made, parcel] {
    try {
      link_of(end, from, rank_).receive(made.memory.get(), parcel.floats, made.read);
      arrived(parcel.number, nullptr);
    } catch (...) {
      arrived(parcel.number, std::current_exception());
    }
  });
}

void Parcels::arrived(std::int64_t number, std::exception_ptr error) {
  const std::lock_guard lock(mutex_);
  Arrival& one = arrivals_.at(number);
  one.here = error == nullptr;
  one.error = error;
  if (one.waiting != nullptr) completions_->post(std::exchange(one.waiting, nullptr));
  if (one.run == run_) return;
  if (one.here) keep(std::move(one.room));  // of an earlier run: nobody wants it
  arrivals_.erase(number);
}

bool Parcels::still_coming(const Pending& operation) {
  const std::int64_t number = operation->message.parcel.number;
  if (number == 0) return false;
  const std::lock_guard lock(mutex_);
  const auto found = arrivals_.find(number);
  if (found == arrivals_.end()) return false;  // of an earlier run
  if (!found->second.here && !found->second.error) {
    found->second.waiting = operation;
    return true;
  }
  operation->error = found->second.error;
  return false;
}

Parcels::Room Parcels::take(const Parcel& parcel) {
  const std::lock_guard lock(mutex_);
  const auto found = arrivals_.find(parcel.number);
  Room room = std::move(found->second.room);
  arrivals_.erase(found);
  return room;
}

void Parcels::give_back(Room room) {
  room.read = memory_.mark();
  const std::lock_guard lock(mutex_);
  keep(std::move(room));
}

void Parcels::finish() {
  std::vector<CommunicationThread*> threads;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [pair, end] : ends_) threads.push_back(&end->thread);
  }
  for (CommunicationThread* thread : threads) {
    std::promise<void> through;
    thread->submit([&through] { through.set_value(); });
    through.get_future().wait();
  }
}

}  // namespace stepcast
