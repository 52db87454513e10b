#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "kernels/network.hpp"
#include "kernels/stopwatch.hpp"
#include "strategies/arithmetic/learning_rate.hpp"
#include "strategies/arrays.hpp"
#include "strategies/conditions.hpp"
#include "strategies/plan.hpp"
#include "validate/array_map.hpp"
#include "validate/mirror.hpp"

namespace stepcast {

/// Times of both clocks that a device spent at work: where they differ, something else had the core.
struct WorkTime {
  double wall = 0, cpu = 0;  ///< [s]; cpu: of all threads of the rank
};

/// What a collective works on, and what this rank does around it.
struct CollectiveWork {
  std::span<float> memory = {};
  /// Around each phase of its schedule, on the thread that plays it; empty where there is nothing to do.
  std::function<void(std::size_t phase)> before_phase = {}, after_phase = {};
  /// Around all phases, there too, with the part of `memory` that this rank works on.
  std::function<void(std::span<float> part)> before = {}, after = {};
  std::function<void()> waited = {};  ///< when the program has waited for it; may be empty
  std::int64_t elements = -1;  ///< that it sums, where memory holds them compressed; -1: those in memory
  /// Where `memory` lies on a device that has memory of its own, and what the device does before; else null.
  float* on_device = nullptr;
  DeviceMemory::Mark ready = {};
  /// Not null: what a phase sends is fetched from there after `before_phase`, and what came is stored there
  /// before `after_phase`, by who plays it; then there is no `before` and no `after`.
  DeviceMemory* phases_on = nullptr;
};

/// What computes for a worker of a real run, and its arrays. An abstract class because ranks that share
/// cores sleep instead of computing.
class RankDevice {
 public:
  virtual ~RankDevice() = default;

  /// Parameters, optimizer and arrays as they are before a run.
  virtual void begin() = 0;
  /// Step 0 comes with `begin`.
  virtual void begin_step(int /*step*/) {}
  /// A device with memory of its own is only told to: `finish` waits for it.
  virtual void compute(Work pass, LayerRange layers) = 0;
  /// @return false: this device does no arithmetic
  virtual bool calculate(const Arithmetic& run) = 0;
  /// Reads and writes so many arrays of the parameters' size in all, as averaging does.
  virtual void touch_arrays(double arrays, double seconds) = 0;
  virtual void pause(double seconds) = 0;
  /// Returns when all that was computed is done, and books it.
  void finish();

  /// The memory that a collective or a message means: the elements, or as many as the size says where there
  /// are none. Any thread may ask.
  std::span<float> memory(const Buffer& buffer);

  /// What a message carries when it is sent, and where one goes that comes. `arrived` is called when the
  /// program has waited for it.
  virtual std::span<float> outgoing(const Message& message);
  virtual std::span<float> incoming(const Message& message) { return memory(message.buffer); }
  virtual void arrived(const Message& message);

  /// Of a message's payload, that lie where the host cannot touch them; 0: none do, and it goes by the host.
  virtual std::int64_t floats_on_device(const Message& message);
  /// Copies them into, or from, memory of the device; it is only told to. `take_from_parcel` is called when
  /// the program has waited for the message.
  virtual void put_in_parcel(const Message& message, float* to);
  virtual void take_from_parcel(const Message& message, const float* from);

  virtual CollectiveWork work_of(const Collective& collective);

  const WorkTime& worked() const { return worked_; }
  /// Null: the host can touch what it computes on.
  DeviceMemory* device_memory() const { return mirror_ ? &mirror_->device() : nullptr; }

 protected:
  RankDevice() = default;
  /// @param network  whose parameters and gradients are the arrays; it outlives this
  explicit RankDevice(Network& network);

  /// Parameters or gradients of a network as the host may touch them; none for other arrays.
  std::span<float> array_of(const Network& network, Array array) const;
  /// On memory of the mirror, or on what the host has (null, or not of it).
  static CollectiveWork work_on(std::span<float> part, Mirror* mirror);
  /// On memory of the backend that is no parameter or gradient.
  CollectiveWork work_on_backend(std::span<float> there);
  /// A sum over ranks that a layer's pass waits for. Where a part has none, as of error signals that nothing
  /// below learns from, the plan sends one all the same.
  CollectiveWork sum_within(LayerKernel& kernel, Pass pass, const Collective& collective);
  virtual std::span<float> array(Array array) = 0;
  virtual Slice stored(const Slice& of_model) const = 0;
  /// Books the work since then.
  void book(const Instant& begin);
  /// Does what computes and books it, at once or with `finish`.
  void timed(const std::function<void()>& work);

  WorkTime worked_;
  std::unique_ptr<Mirror> mirror_;  ///< null: the host can touch the device's memory

 private:
  struct Interval {
    DeviceMemory::Mark begin, end;
  };

  std::span<float> other(Array array, std::size_t size);

  std::vector<Interval> intervals_;                 ///< of the device's work, not booked yet
  std::map<float*, std::shared_ptr<float>> twins_;  ///< of memory of the backend, on the host
  std::mutex mutex_;                                ///< of others_
  /// Arrays that no kernel knows, of each size that was asked for.
  std::map<std::pair<Array, std::size_t>, std::vector<float>> others_;
};

/// How a device learns; the defaults are for runs that are only timed.
struct DeviceLearning {
  LearningRate rate;
  int summed = 1;            ///< gradients in one that its own optimizer takes (Plan::summed_gradients)
  std::vector<Slice> owned;  ///< stored parameters that its own optimizer updates; empty: all
  int place = 0;             ///< of this worker among those that sum gradients
  bool compresses = false;   ///< gradients travel compressed
  std::function<void()> next_batch;     ///< called before each mini-batch; empty: always the same data
  std::function<void()> next_step;      ///< the same of stages and parts of samples, before each step
  std::function<void(Network&)> start;  ///< parameters to begin with; empty: as the network was made
};

/// Real kernels. The network outlives it.
std::unique_ptr<RankDevice> kernel_device(Network& network, DeviceLearning learning = {});

/// What a rank that sleeps draws: the same as the simulated worker.
struct SleepNoise {
  Noise noise;
  std::uint64_t seed = 1;
  std::uint32_t worker = 0;  ///< or node: see Noise::per_node
  bool training = true;      ///< else no noise acts on it
};

/// Sleeps for what the trace says, times what is drawn; arrays of `elements`. For more ranks than cores.
std::unique_ptr<RankDevice> sleeping_device(const Workload& workload, std::int64_t elements,
                                            SleepNoise noise);

}  // namespace stepcast
