#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "kernels/network/network.hpp"
#include "kernels/timing/step_timer.hpp"
#include "runtime/memory/parameters.hpp"
#include "strategies/arithmetic/optimizer.hpp"
#include "strategies/plan/plan.hpp"
#include "strategies/plan/run_conditions.hpp"
#include "strategies/program/worker.hpp"

namespace stepcast {

/// Runs a pass of the layers in this range, of those that the network has.
void run_layers(Network& network, Work pass, LayerRange layers);

/// Runs segments of layers (strategies/model_parallel/layer_segments.hpp), forward or backward, of a network
/// whose layers may be tensor-parallel. If a layer's error signals are summed over ranks, its weight
/// gradients are computed in the segment that overlaps with this sum.
/// @param after  called after each pass of a layer; may be empty
void run_segments(Network& network, Work pass, LayerRange segments, const Network::Observer& after = {});

/// Time that a device spent computing, on both clocks. Where they differ, something else used the core.
struct WorkTime {
  double wall = 0, cpu = 0;  ///< [s]; cpu: of all threads of the rank
};

/// Binding of a collective of the plan to this rank: its memory, and hooks around its execution.
///
/// | Device                                     | before_phase, after_phase | fetch, store | on_waited     |
/// |--------------------------------------------|---------------------------|--------------|---------------|
/// | all: parameters and gradients              | -                         | GPU          | -             |
/// | ReplicaDevice: compressed gradients        | after_phase: sum a share  | -            | -             |
/// | SpatialDevice: halos, resharding           | pack, unpack              | -            | -             |
/// | sums inside a layer (statistics, tensor-   | -                         | GPU          | finish the    |
/// | parallel outputs and error signals)        |                           |              | kernel        |
/// | gathered inputs of shared filters          | -                         | GPU          | unpack        |
/// | rows of experts                            | -                         | -            | finish the    |
/// |                                            |                           |              | kernel        |
/// | gradients in several parts                 | -                         | -            | unpack        |
/// | PipelineStageDevice: reduce-scatter of the | -                         | GPU          | add the owned |
/// | gradients of one micro-batch               |                           |              | share         |
///
/// "GPU": only where the host cannot access the device's memory. SpatialDevice sets `staging_device` instead
/// there.
struct CollectiveBinding {
  std::span<float> memory = {};  ///< the buffer on the host; a staging copy where `on_device` is set
  /// Called around each phase of the schedule by the thread that executes it; may be empty.
  std::function<void(std::size_t phase)> before_phase = {}, after_phase = {};
  /// Called by that thread before and after all phases, with the part of `memory` that this rank works on:
  /// they copy it from and to the device; may be empty.
  std::function<void(std::span<float> part)> fetch = {}, store = {};
  /// Called by the program when it has waited for the collective; may be empty.
  std::function<void()> on_waited = {};
  bool counted = false;  ///< each part of `memory` begins with the number of its floats that are sent
  /// Elements that `memory` holds compressed; -1: it is not compressed.
  std::int64_t uncompressed_elements = -1;
  float* on_device = nullptr;  ///< the buffer on the device; null if the host can access it
  /// The device's work that the collective waits for, if `on_device` is set.
  DeviceMemory::Event ready = {};
  /// If not null, the executor of a phase copies what it sends from this device after `before_phase`, and
  /// what it received to this device before `after_phase`. `fetch` and `store` are then empty.
  DeviceMemory* staging_device = nullptr;
};

/// Computes for one rank of a real run, and owns the rank's arrays. The class is abstract because there is a
/// device for each form of model parallelism, and one that sleeps instead of computing.
class RankDevice {
 public:
  virtual ~RankDevice() = default;

  /// Resets parameters, optimizer and arrays to their state before a run.
  virtual void begin() = 0;
  /// Called before each step but the first (step 0), which `begin` prepares.
  virtual void begin_step(int /*step*/) {}
  /// Runs a pass. A device with memory of its own only enqueues it; `finish` waits for it.
  virtual void compute(Work pass, LayerRange layers) = 0;
  /// Executes arithmetic on the rank's arrays.
  /// @return false if this device does none
  virtual bool calculate(const Arithmetic& /*run*/) { return false; }
  /// Takes the time of arithmetic that is not executed: by default none.
  /// @param arrays   arrays of the parameters' size that the arithmetic reads and writes in all
  /// @param seconds  what the plan expects
  virtual void touch_arrays(double /*arrays*/, double /*seconds*/) {}
  /// Waits for this long; by default by sleeping.
  virtual void pause(double seconds);
  /// Returns when all enqueued passes are done, and counts their time.
  void finish();

  /// The memory of a buffer of the plan: its elements, or as many as its size says if it names none.
  /// Thread-safe.
  std::span<float> memory(const Buffer& buffer);

  /// The memory that a message is sent from and received into.
  virtual std::span<float> send_buffer(const Message& message);
  virtual std::span<float> receive_buffer(const Message& message) { return memory(message.buffer); }
  /// Called when the program has waited for a message whose payload was received by the host.
  virtual void on_received(const Message& message);

  /// Floats of a message's payload that lie in device memory; 0: the payload travels through the host.
  virtual std::int64_t device_floats(const Message& message);
  /// Enqueues a copy of the payload into or from a staging buffer of the device. copy_from_payload is called
  /// when the program has waited for the message.
  virtual void copy_to_payload(const Message& message, float* to);
  virtual void copy_from_payload(const Message& message, const float* from);

  virtual CollectiveBinding bind_collective(const Collective& collective);

  const WorkTime& work_time() const { return work_time_; }
  /// The device's memory if the host cannot access it; else null.
  DeviceMemory* device_memory() const { return mirror_ ? &mirror_->device() : nullptr; }

 protected:
  RankDevice() = default;
  /// @param network  its parameters and gradients are the arrays of this device; it outlives the device
  explicit RankDevice(Network& network);

  /// Parameters or gradients of a network in memory that the host can access; empty for other arrays.
  std::span<float> array_of(const Network& network, Array array) const;
  /// Binds a part of the mirror, or memory of the host. @param mirror  null if there is none
  static CollectiveBinding bind_array(std::span<float> part, HostMirror* mirror);
  /// Binds memory of the backend that is neither parameters nor gradients.
  CollectiveBinding bind_backend_memory(std::span<float> on_backend);
  /// Binds a sum over ranks that a layer's pass waits for. If the kernel has nothing to sum (as for error
  /// signals that no earlier layer needs), the plan's collective runs on an array of the host.
  CollectiveBinding bind_layer_sum(LayerKernel& kernel, Pass pass, const Collective& collective);
  /// Binds an all-to-all of the rows of experts, before or after a pass of their layer.
  CollectiveBinding bind_expert_rows(LayerKernel& kernel, Pass pass);
  virtual std::span<float> array(Array array) = 0;
  /// ParameterLayout::stored of the network.
  virtual Slice stored(const Slice& of_model) const = 0;
  /// Counts the time from `begin` to now as work.
  void record_since(const Instant& begin);
  /// Executes or enqueues `work` and counts its time, at once or in `finish`.
  void time_work(const std::function<void()>& work);

  WorkTime work_time_;
  std::unique_ptr<HostMirror> mirror_;  ///< null: the host can access the device's memory

 private:
  struct Interval {
    DeviceMemory::Event begin, end;
  };

  std::span<float> host_array(Array array, std::size_t size);

  std::vector<Interval> intervals_;                       ///< enqueued work whose time is not counted yet
  std::map<float*, std::shared_ptr<float>> host_copies_;  ///< host copies of backend memory, by its address
  std::mutex mutex_;                                      ///< guards host_arrays_
  /// Arrays that no kernel uses, one for each size that was asked for.
  std::map<std::pair<Array, std::size_t>, std::vector<float>> host_arrays_;
};

/// Settings of a device that learns. The defaults are for runs that are only timed.
struct DeviceLearning {
  LearningRate rate;
  int summed = 1;  ///< gradients that were summed into one step of the optimizer (Plan::summed_gradients)
  std::vector<Slice> owned;  ///< stored parameters that this rank's optimizer updates; empty: all
  int place = 0;             ///< index of this worker among those that sum gradients
  bool compresses = false;   ///< gradients are compressed before they are sent
  /// Called before each mini-batch; empty: the data never change.
  std::function<void()> next_batch;
  /// Makes the mini-batch with this number the next one; may be empty.
  std::function<void(std::int64_t)> choose_mini_batch;
  /// Replicas: runs a forward or backward pass in place of `run_layers`; may be empty.
  std::function<void(Work, LayerRange)> run_pass;
  /// Replicas: counts a step of the network's optimizer in place of `Network::begin_update`; may be empty.
  std::function<void()> begin_update;
  /// Replicas: the device that runs the forward and backward passes and has what ranks exchange in them, if
  /// the network is one rank's part of a larger one; else null.
  std::shared_ptr<RankDevice> passes = {};
  /// Replicas: number, among the elements that ranks exchange with servers, of the network's first parameter.
  std::int64_t first_element = 0;
  /// Replicas: the stored parameters on which arithmetic on whole arrays works; none: all.
  std::optional<Slice> part;
  /// Pipeline stages and spatial shards: called before each step; may be empty.
  std::function<void()> next_step;
  /// Sets the initial parameters; empty: those that the network was made with.
  std::function<void(Network&)> start;
};

/// Device of a data-parallel replica: it runs the kernels of a whole network, which outlives it.
std::unique_ptr<RankDevice> replica_device(Network& network, DeviceLearning learning = {});

/// Noise that a sleeping rank draws, equal to that of the simulated worker.
struct SleepNoise {
  Noise noise;
  std::uint64_t seed = 1;
  std::uint32_t worker = 0;  ///< worker, or node if Noise::per_node
  bool training = true;      ///< false: no noise (servers)
};

/// Device that sleeps for the layer times of the workload, times the drawn noise factor. It allows more ranks
/// than cores.
/// @param elements  size of its parameters and gradients
std::unique_ptr<RankDevice> sleeping_device(const Workload& workload, std::int64_t elements,
                                            SleepNoise noise);

}  // namespace stepcast
