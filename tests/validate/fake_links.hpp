#pragma once

#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <stdexcept>
#include <vector>

#include "validate/parcels.hpp"

namespace stepcast::test {

/// Links between ranks that are threads, as NCCL's are: a send returns when the other end has received, what
/// it sends is read and written as a device's memory is, and sizes must agree.
class FakeLinks {
 public:
  OpenLink of(int rank, DeviceMemory& memory) {
    return [this, rank, &memory](int from, int to) -> std::unique_ptr<DeviceLink> {
      if (rank != from && rank != to) throw std::logic_error("a link of others");
      return std::make_unique<End>(*this, std::pair{from, to}, memory);
    };
  }
  /// Payloads that went from one device to another.
  int carried() {
    const std::lock_guard lock(mutex_);
    return carried_;
  }
  /// From now on every transfer throws.
  void cut() {
    const std::lock_guard lock(mutex_);
    cut_ = true;
    changed_.notify_all();
  }

 private:
  struct Way {
    std::deque<std::vector<float>> offered;
    int taken = 0, put = 0;
  };

  class End final : public DeviceLink {
   public:
    End(FakeLinks& links, std::pair<int, int> pair, DeviceMemory& memory)
        : links_(links), pair_(pair), memory_(memory) {}

    void send(const float* from, std::int64_t floats, const DeviceMemory::Mark& after) override {
      std::vector<float> values(static_cast<std::size_t>(floats));
      memory_.to_host(after ? after : memory_.mark(), from, values.data(), values.size());
      std::unique_lock lock(links_.mutex_);
      Way& way = links_.ways_[pair_];
      way.offered.push_back(std::move(values));
      const int mine = ++way.put;
      links_.changed_.notify_all();
      links_.changed_.wait(lock, [&] { return links_.cut_ || way.taken >= mine; });
      if (links_.cut_) throw std::runtime_error("the link was cut");
    }
    void receive(float* to, std::int64_t floats, const DeviceMemory::Mark&) override {
      std::unique_lock lock(links_.mutex_);
      Way& way = links_.ways_[pair_];
      links_.changed_.wait(lock, [&] { return links_.cut_ || !way.offered.empty(); });
      if (links_.cut_) throw std::runtime_error("the link was cut");
      const std::vector<float> values = std::move(way.offered.front());
      way.offered.pop_front();
      if (values.size() != static_cast<std::size_t>(floats)) throw std::logic_error("sizes differ");
      memory_.to_device(values.data(), to, values.size());
      ++way.taken;
      ++links_.carried_;
      links_.changed_.notify_all();
    }

   private:
    FakeLinks& links_;
    std::pair<int, int> pair_;
    DeviceMemory& memory_;
  };

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::pair<int, int>, Way> ways_;
  int carried_ = 0;
  bool cut_ = false;
};

}  // namespace stepcast::test
