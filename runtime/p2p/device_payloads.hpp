#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "kernels/network/device_memory.hpp"
#include "runtime/transport/progress_thread.hpp"

namespace stepcast {

/// One end of a one-way channel between the devices of two ranks, like NCCL's send and receive of a
/// communicator of two ranks. Transfers keep their order. The class is abstract because NCCL needs a GPU for
/// each end, and tests have none.
class DeviceChannel {
 public:
  virtual ~DeviceChannel() = default;

  /// Sends or receives `floats` floats of device memory. Begins when the device's work before the event is
  /// done (null: at once). `send` returns when all floats have left, `receive` when all have arrived.
  virtual void send(const float* from, std::int64_t floats, const DeviceMemory::Event& after) = 0;
  virtual void receive(float* to, std::int64_t floats, const DeviceMemory::Event& after) = 0;
};

/// Opens this rank's end of the channel from rank `from` to rank `to`; returns when the other end is open
/// too.
using OpenChannel = std::function<std::unique_ptr<DeviceChannel>(RankId from, RankId to)>;

/// Message payloads that travel from device to device.
///
/// The message itself goes through PointToPoint and carries the PayloadId. Both ends transfer the payloads of
/// a pair of ranks in the order of their messages. Each direction has a channel and a thread of its own, so a
/// payload waits for no program but its sender's, and no order of sends and receives in the programs can
/// deadlock. Payloads are staged: a send reads a buffer that the device has packed before, and a receive
/// fills a buffer of its own, so that arrays change only when their program copies the payload.
class DevicePayloads {
 public:
  /// Staging buffer in the device's memory for one payload.
  struct PayloadBuffer {
    std::shared_ptr<float> memory;
    std::int64_t floats = 0;
    /// The device's last work that reads it comes before this event; null: none.
    DeviceMemory::Event read = {};
  };

  /// All arguments outlive this object.
  DevicePayloads(DeviceMemory& memory, RankId rank, int ranks, OpenChannel open)
      : memory_(memory), rank_(rank), ranks_(ranks), open_(std::move(open)) {}
  DevicePayloads(const DevicePayloads&) = delete;
  ~DevicePayloads();  ///< finishes all transfers first

  /// Opens the channels of these (sender, receiver) pairs that this rank is an end of, so that no message
  /// waits for that. All ranks call it with the same pairs in the same order.
  void open_channels(const std::vector<std::pair<RankId, RankId>>& pairs);

  /// Drops payloads that have arrived and were not taken, like PointToPoint::begin_run.
  void begin_run(CompletionQueue& completions);

  /// After this call transfers that end notify nobody, because the receivers of the notification are about to
  /// be destroyed.
  void end_runs();

  /// A free staging buffer of at least `floats` floats.
  PayloadBuffer acquire(std::int64_t floats);
  /// Sends the first `floats` floats of a buffer that the device's work up to now has filled, and takes the
  /// buffer back afterwards. Posts `operation` when they have left.
  PayloadId send(RankId rank, const PayloadBuffer& buffer, std::int64_t floats, Pending operation);
  /// Starts to receive a payload whose message has arrived.
  void post_receive(const PayloadId& payload);
  /// Returns true if the payload of the operation's message has not arrived yet; the operation is then posted
  /// again on arrival. If the transfer failed, its error becomes the operation's.
  bool defer_until_arrival(const Pending& operation);
  /// The buffer of a payload that has arrived. The caller calls `release` after it has submitted the device
  /// work that reads the buffer.
  PayloadBuffer take_arrived(const PayloadId& payload);
  void release(PayloadBuffer buffer);

  /// Returns when no transfer is in progress.
  void finish();

 private:
  struct ChannelEnd {
    std::unique_ptr<DeviceChannel> channel;
    ProgressThread thread;  // declared last: it uses the channel
  };
  struct Arrival {
    PayloadBuffer buffer;
    bool complete = false;
    std::exception_ptr error = {};
    Pending waiting = {};  ///< operation that is posted on arrival; null: none
    int run = 0;
  };

  ChannelEnd& channel_end(RankId from, RankId to);
  /// Called on the thread of the channel end.
  DeviceChannel& channel_of(ChannelEnd& end, RankId from, RankId to);
  void on_arrival(std::int64_t number, const std::exception_ptr& error);
  void add_free(PayloadBuffer buffer);

  DeviceMemory& memory_;
  RankId rank_;
  int ranks_;
  OpenChannel open_;
  std::mutex mutex_;  ///< guards the members below
  std::int64_t sent_ = 0;
  int run_ = 0;
  CompletionQueue* completions_ = nullptr;
  std::vector<PayloadBuffer> free_buffers_;   ///< never freed, because freeing would synchronize the device
  std::map<std::int64_t, Arrival> arrivals_;  ///< by PayloadId::number
  // Declared last: the threads of the ends use the other members.
  std::map<std::pair<RankId, RankId>, std::unique_ptr<ChannelEnd>> ends_;
};

}  // namespace stepcast
