#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "core/typed_numbers.hpp"
#include "strategies/collectives/schedule.hpp"
#include "strategies/program/program.hpp"

namespace stepcast {

class CompressedGradient;

/// The arrays of one worker or server in a run that calculates: float32, in memory order, with padding. At
/// the start of a run, `center` and `model` equal the parameters, and all other arrays are zeros.
class Arrays {
 public:
  virtual ~Arrays() = default;

  virtual std::span<float> of(Array array) = 0;
  /// The part of the array that holds these elements of the model.
  virtual std::span<float> of(Array array, const Slice& elements) = 0;
  /// One step of the optimizer on these elements. @param summed  number of gradients in the sum `gradient`
  virtual void descend(Array gradient, const Slice& elements, int summed) = 0;
  /// Compressed form of these elements, with their quantization error, which is zero at the start of a run.
  virtual CompressedGradient& compressed(const Codec& codec, const Slice& elements) = 0;
  /// The next forward pass reads this mini-batch of the training data, counted from 0, instead of the one
  /// that is next for this worker.
  virtual void choose_mini_batch(std::int64_t /*number*/) {}
  /// Learning rate of the optimizer's next step.
  virtual double learning_rate() const = 0;
};

/// Arithmetic of a strategy on arrays.
using Arithmetic = std::function<void(Arrays&)>;

/// Pass of a device through a range of layers.
enum class Work { forward, backward, update };

/// Layers [first, last) of the model.
struct LayerRange {
  int first = 0;
  int last = 0;

  bool empty() const { return first >= last; }
};

/// Seconds of each pass of a layer for one micro-batch (update: for one step).
struct LayerSeconds {
  double forward = 0, backward = 0, update = 0;
};

/// Gradients that travel in one all-reduce, collected from the last layer on. They are complete after the
/// backward pass of `layers`.
struct Bucket {
  LayerRange layers;
  Slice elements;         ///< part of the gradient array, layers and arrays in the model's order
  Bytes gradient;         ///< size in a message
  CollectiveId sum = {};  ///< its collective; none where nothing is sent
  Seconds wait = {};      ///< from its last gradient to the start of its sum, while the pass goes on
};

/// Work of one worker in a step, from model, traces and options. Plain data.
struct Workload {
  std::vector<std::string> layer_names;
  std::vector<LayerSeconds> median;  ///< one entry per layer
  std::vector<LayerSeconds> host;    ///< in which the host issues the passes; empty: it takes no time
  std::vector<std::vector<LayerSeconds>>
      samples;                    ///< measured steps: [sample][layer]; empty: no jitter to draw from
  int sample_ranks = 1;           ///< ranks measured together: samples of the first rank, then of the next
  double update_arrays = 5;       ///< arrays of the parameters' size that an update reads and writes
  std::vector<Bucket> buckets;    ///< in the order in which the backward pass completes them
  std::vector<Bytes> statistics;  ///< batch-norm statistics of each layer; 0: none
  Bytes input;                    ///< input of one micro-batch, read from storage

  int layers() const { return median.size(); }
};

constexpr RoleId kAnyone;  ///< in a receive: a message of any role

/// Arithmetic on a worker's own arrays. A simulation takes `duration`; a run that calculates calls `run`.
struct LocalWork {
  const char* name = "";
  Seconds duration;
  Arithmetic run;
};

/// Interface between a strategy's program and the runtime, simulated or real. It has no clock, no SimGrid and
/// no MPI. `start_...` returns immediately; the other operations are awaited. If one program stands for
/// several equal workers ("members"), all of them make each call.
class Worker : private Waiter {
 public:
  virtual const Workload& workload() const = 0;

  virtual Pending start_compute(Work pass, LayerRange layers) = 0;
  virtual Pending start_local(const LocalWork& work) = 0;
  /// Starts a collective of the plan with the workers of its communicator. The n-th call of every
  /// worker on a communicator must be the same collective.
  virtual Pending start_collective(CollectiveId collective) = 0;
  /// Sends to a role of the plan: member i sends to its member i, or to its only member. Completes on
  /// arrival.
  virtual Pending start_send(RoleId role, const Message& message) = 0;
  /// Receives the next message with this tag, in order of arrival, from one role or from any role.
  /// @param into  array for its elements; none: the array that the sender named
  virtual Pending start_receive(MessageTag tag, RoleId role = kAnyone, Array into = Array::none) = 0;
  /// Loads the next micro-batch from storage to the device.
  virtual Pending start_load(Bytes input) = 0;
  /// Keeps the device idle for `duration`, such as for input work or an optimizer on the host.
  virtual Pending start_pause(Seconds duration) = 0;

  /// Makes the host wait until the device has done all that was issued, as when a program reads a loss. The
  /// end of a step does the same. Where the host is the device, it is always so.
  virtual void synchronize() {}
  virtual void end_step() = 0;
  /// Records the time since the last mark of this program, or since its start, under a name. @returns it [s]
  virtual double mark(const char* phase) = 0;
  /// Records a number for the strategy's own columns, such as a staleness.
  virtual void record(const char* what, double value) = 0;

  Finished finished(Pending operation) { return Finished(std::move(operation), *this); }
  Finished forward() { return finished(start_compute(Work::forward, all_layers())); }
  Finished forward(LayerRange layers) { return finished(start_compute(Work::forward, layers)); }
  Finished backward() { return finished(start_compute(Work::backward, all_layers())); }
  Finished backward(LayerRange layers) { return finished(start_compute(Work::backward, layers)); }
  Finished optimizer_step() { return finished(start_compute(Work::update, all_layers())); }
  Finished local(const LocalWork& work) { return finished(start_local(work)); }
  Finished collective(CollectiveId one) { return finished(start_collective(one)); }
  Finished send(RoleId role, const Message& message) { return finished(start_send(role, message)); }
  Finished receive(MessageTag tag, RoleId role = kAnyone, Array into = Array::none) {
    return finished(start_receive(tag, role, into));
  }
  Finished load(Bytes input) { return finished(start_load(input)); }
  Finished pause(Seconds duration) { return finished(start_pause(duration)); }

  LayerRange all_layers() const { return {0, workload().layers()}; }
};

}  // namespace stepcast
