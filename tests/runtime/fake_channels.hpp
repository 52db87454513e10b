#pragma once

#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <stdexcept>
#include <vector>

#include "runtime/p2p/device_payloads.hpp"

namespace stepcast::test {

/// Device channels between ranks that are threads, with the behaviour of NCCL's: a send returns when the
/// other end has received, values are read and written in device memory, and the sizes of both ends must
/// agree.
class FakeChannels {
 public:
  OpenChannel of(RankId rank, DeviceMemory& memory) {
    return [this, rank, &memory](RankId from, RankId to) -> std::unique_ptr<DeviceChannel> {
      if (rank != from && rank != to) throw std::logic_error("this rank is no end of the channel");
      return std::make_unique<ChannelEnd>(*this, std::pair{from, to}, memory);
    };
  }
  /// Number of payloads that were transferred.
  int transferred() {
    const std::lock_guard lock(mutex_);
    return transferred_;
  }
  /// Makes every transfer throw from now on.
  void fail() {
    const std::lock_guard lock(mutex_);
    failed_ = true;
    changed_.notify_all();
  }

 private:
  struct Direction {
    std::deque<std::vector<float>> offered;
    int taken = 0, put = 0;
  };

  class ChannelEnd final : public DeviceChannel {
   public:
    ChannelEnd(FakeChannels& channels, std::pair<RankId, RankId> pair, DeviceMemory& memory)
        : channels_(channels), pair_(pair), memory_(memory) {}

    void send(const float* from, std::int64_t floats, const DeviceMemory::Event& after) override {
      std::vector<float> values(floats);
      memory_.to_host(after ? after : memory_.record_event(), from, values.data(), values.size());
      std::unique_lock lock(channels_.mutex_);
      Direction& direction = channels_.directions_[pair_];
      direction.offered.push_back(std::move(values));
      const int mine = ++direction.put;
      channels_.changed_.notify_all();
      channels_.changed_.wait(lock, [&] { return channels_.failed_ || direction.taken >= mine; });
      if (channels_.failed_) throw std::runtime_error("the channel failed");
    }
    void receive(float* to, std::int64_t floats, const DeviceMemory::Event&) override {
      std::unique_lock lock(channels_.mutex_);
      Direction& direction = channels_.directions_[pair_];
      channels_.changed_.wait(lock, [&] { return channels_.failed_ || !direction.offered.empty(); });
      if (channels_.failed_) throw std::runtime_error("the channel failed");
      const std::vector<float> values = std::move(direction.offered.front());
      direction.offered.pop_front();
      if (values.size() != static_cast<std::size_t>(floats)) throw std::logic_error("sizes differ");
      memory_.to_device(values.data(), to, values.size());
      ++direction.taken;
      ++channels_.transferred_;
      channels_.changed_.notify_all();
    }

   private:
    FakeChannels& channels_;
    std::pair<RankId, RankId> pair_;
    DeviceMemory& memory_;
  };

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::pair<RankId, RankId>, Direction> directions_;
  int transferred_ = 0;
  bool failed_ = false;
};

}  // namespace stepcast::test
