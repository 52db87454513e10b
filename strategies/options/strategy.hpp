#pragma once

#include <string>
#include <vector>

#include "core/keys.hpp"
#include "core/yaml.hpp"
#include "models/cost/memory.hpp"
#include "models/network/model.hpp"
#include "strategies/plan/plan.hpp"
#include "strategies/plan/setting.hpp"
#include "strategies/program/worker.hpp"

namespace stepcast {

template <class V>
struct Form;  // core/fields.hpp

/// Arithmetic of a strategy on arrays of all parameters, as ranks execute it between training steps. Real
/// runs time it, and `Setting::measured` has its time.
struct TimedArithmetic {
  std::string name;
  /// Whether the rank that executes it also trains, so that a step has used the caches meanwhile.
  bool trains = true;
  Arithmetic before;  ///< writes what has just arrived; it is not timed
  Arithmetic run;
};

/// Copies an array as a receive from another rank would write it (TimedArithmetic::before).
Arithmetic delivered(Array from, Array to);

/// What the arithmetic of a strategy works on where it is timed.
struct ArithmeticPlace {
  Slice whole;            ///< all elements of the model
  int ranks = 1;          ///< that execute it at the same time
  Arithmetic sum_models;  ///< sums the ranks' parameters
};

/// A strategy as the registry lists it (strategies/registry.hpp). Plain data.
struct Strategy {
  std::string kind;    ///< `strategy: {kind: ...}`
  std::string what;    ///< one plain line
  std::string source;  ///< the paper
  /// Reads the mapping `strategy:` and makes the plan. @throws InputError
  Plan (*plan)(const YamlValue& options, const Setting& setting);
  Keys keys;
  std::string example;        ///< the mapping `strategy:` as YAML text, with all required keys
  std::string example_model;  ///< a model of models/ that the example can train
  std::vector<std::string> other_names = {};  ///< in small letters, for "did you mean"
  /// Arithmetic whose time a real run measures before its forecast; null: none.
  std::vector<TimedArithmetic> (*timed_arithmetic)(const ArithmeticPlace& place) = nullptr;
  /// Devices that its servers take besides those of the workers; null: none.
  int (*server_devices)(const YamlValue& options) = nullptr;
  /// Steps that are simulated where the scenario does not say; null: 1.
  int (*usual_steps)(const YamlValue& options) = nullptr;
  /// Whether a worker sends or receives arrays of the whole network in every step, so that a step finds the
  /// caches in another state.
  bool exchanges_every_step = true;
  /// Whether training goes on without the workers that fail, where the scenario does not say (`answer`).
  bool continues_without_failed = false;
};

/// Options that every strategy has; `compression` is read by strategies/compression.
struct TrainingOptions {
  double compute_factor = 1;    ///< multiplies all layer times
  Seconds step_overhead;        ///< time of a step outside the layers, such as input work
  bool mixed = false;           ///< gradients and activations have 2 bytes
  double compute_slowdown = 1;  ///< factor on the time of compute during a collective; >= 1

  Bytes element() const { return {mixed ? 2.0 : 4.0}; }  ///< size of a gradient in a message
};

const Keys& training_keys();
TrainingOptions read_training_options(const YamlMap& map);

/// The origin of a plan's layer times, for the results.
struct TimesSource {
  std::string kind;                ///< see LayerTimes::kind
  std::vector<std::string> flags;  ///< doubts about the times
};

/// The layers' names and times. The strategy adds buckets, batch-norm statistics and input.
struct TimedWorkload {
  Workload workload;
  TimesSource source;
};
TimedWorkload make_workload(const Model& model, LayerTimes times, double compute_factor);

/// Time of arithmetic that reads or writes `arrays` arrays of the size of all parameters: the time of the
/// trace's update, which reads and writes Workload::update_arrays of them, in proportion.
Seconds array_work(const Workload& workload, double arrays);
/// Time of arithmetic on `arrays` arrays of the size of the parameters of these layers.
Seconds array_work(const Workload& workload, LayerRange layers, double arrays);

/// Activations that are kept in the host's memory until the backward pass.
struct ActivationOffload {
  BytesPerSecond bandwidth;  ///< bandwidth of the device's link to the host, in each direction
  Bytes element;             ///< size of an element
  MemoryOptions memory;      ///< samples at once, and which layers overwrite their input
};

/// Lengthens every forward and backward pass whose copies (models/cost/memory_options.hpp) take longer
/// than its kernels. A layer's copies run at the same time as its kernels, and the next layer waits for both.
void swap_to_host(const Model& model, const ActivationOffload& swap, Workload& workload);

/// Facts about a training step that every plan states, whatever the strategy.
struct StepFacts {
  TimesSource times;
  std::int64_t batch_per_worker = 1;  ///< samples per step of one replica
  double samples_a_step = 1;          ///< samples per step of all replicas
  Memory memory;                      ///< memory of the fullest device
  std::string no_arithmetic;          ///< key of an option whose values are not calculated; empty: none
  int micro_batches = 1;              ///< in which a replica divides the samples of a step
  bool compresses = false;            ///< gradients are compressed
};

/// The last step of every plan: writes the facts into it, and whether the memory fits the device.
void finish_plan(const Setting& setting, const TrainingOptions& training, const StepFacts& step, Plan& plan);

/// Memory options of a device that works on `batch` samples at once.
MemoryOptions memory_options(const Setting& setting, const TrainingOptions& training, std::int64_t batch);

/// A network with dropout cannot compute its activations again: the second pass would drop other elements.
bool has_dropout(const Model& model);

/// Size of the statistics that workers sum for a batch-norm layer: sum and sum of squares of every channel,
/// fp32. 0 for other layers.
Bytes batch_norm_statistics(const Layer& layer);

/// `all_reduce` and the keys that say how it runs.
struct CommunicationOptions {
  AllReduceChoice all_reduce;
  int streams = 1;    ///< collectives of one stream run one after the other
  int in_flight = 1;  ///< collectives at once, over all streams
};

const Keys& communication_keys();
CommunicationOptions read_communication(const YamlMap& map);

/// Makes a communicator run its collectives as the scenario asks.
void apply(const CommunicationOptions& options, Communicator& communicator);

/// Adds a note to the plan for each of communication_keys() that the scenario sets and the plan does not use.
/// A plan of one worker gets no notes.
/// @param instead  reason why the plan has no all-reduce, such as "with compression: top_k"
/// @param at_once  whether several collectives of a communicator can run at the same time
void note_ineffective_communication(const YamlMap& map, const std::string& instead, bool at_once, Plan& plan);

}  // namespace stepcast
