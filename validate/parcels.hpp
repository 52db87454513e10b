#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "kernels/device_memory.hpp"
#include "validate/communication_thread.hpp"
#include "validate/completions.hpp"

namespace stepcast {

/// One end of what carries floats one way between the devices of two ranks, in order. An abstract class
/// because NCCL wants a GPU for each end, and tests have none.
class DeviceLink {
 public:
  virtual ~DeviceLink() = default;

  /// Begins when the work before the mark is done (null: at once); returns when all have left, or are there.
  virtual void send(const float* from, std::int64_t floats, const DeviceMemory::Mark& after) = 0;
  virtual void receive(float* to, std::int64_t floats, const DeviceMemory::Mark& after) = 0;
};

/// This rank's end of the link between two; returns when the other end is there.
using OpenLink = std::function<std::unique_ptr<DeviceLink>(int from, int to)>;

/// Payloads of messages on their way from device to device.
///
/// A message goes by mail and names its parcel. Both ends take the parcels of a pair of ranks in the order of
/// their messages, each way on a link and a thread of its own: a parcel waits for no program but the one that
/// sent it, so no order of sends and receives in programs can make two of them wait for each other. What is
/// sent is copied before, and what comes lands in memory of its own, so that arrays change when their program
/// wants it.
class Parcels {
 public:
  /// Memory of the device for one payload.
  struct Room {
    std::shared_ptr<float> memory;
    std::int64_t floats = 0;
    DeviceMemory::Mark read = {};  ///< by work before this mark, last; null: by none
  };

  /// What is referred to outlives this.
  Parcels(DeviceMemory& memory, int rank, int ranks, OpenLink open)
      : memory_(memory), rank_(rank), ranks_(ranks), open_(std::move(open)) {}
  Parcels(const Parcels&) = delete;
  ~Parcels();  ///< finishes what was given

  /// Opens the links between these ranks that this one has an end of, so that no message waits for that. All
  /// ranks call it with the same pairs in the same order.
  void open(const std::vector<std::pair<int, int>>& pairs);

  /// Forgets what has come and was not taken. As RealMail::begin.
  void begin(Completions& completions);

  Room room(std::int64_t floats);
  /// So many floats that the device has put into the room by now. Posts `operation` when they have arrived.
  Parcel send(int rank, const Room& room, std::int64_t floats, Pending operation);
  /// Its message has come: makes room and takes it from the link.
  void expect(const Parcel& parcel);
  /// Whether what the operation received has not come yet; then it is posted again when it has. An error is
  /// the operation's.
  bool still_coming(const Pending& operation);
  /// What has come; whoever takes it gives the room back when the device has been told to read it.
  Room take(const Parcel& parcel);
  void give_back(Room room);

  /// Returns when nothing is on its way.
  void finish();

 private:
  struct End {
    std::unique_ptr<DeviceLink> link;
    CommunicationThread thread;  // last: it uses the link
  };
  struct Arrival {
    Room room;
    bool here = false;
    std::exception_ptr error = {};
    Pending waiting = {};
    int run = 0;
  };

  End& end_of(int from, int to);
  /// On the thread of the end.
  DeviceLink& link_of(End& end, int from, int to);
  void arrived(std::int64_t number, std::exception_ptr error);
  void keep(Room room);

  DeviceMemory& memory_;
  int rank_, ranks_;
  OpenLink open_;
  std::mutex mutex_;  ///< of all below
  std::int64_t sent_ = 0;
  int run_ = 0;
  Completions* completions_ = nullptr;
  std::vector<Room> spare_;  ///< all that were made: giving memory back would stop the device
  std::map<std::int64_t, Arrival> arrivals_;
  std::map<std::pair<int, int>, std::unique_ptr<End>> ends_;  // last: their threads use the others
};

}  // namespace stepcast
