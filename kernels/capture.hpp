#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/units.hpp"
#include "kernels/network.hpp"
#include "kernels/step_timer.hpp"
#include "models/model.hpp"
#include "models/trace.hpp"

namespace stepcast {

struct CaptureOptions {
  std::string name = {};     ///< of the trace
  std::string command = {};  ///< that makes it again, for the file
  std::int64_t batch = 1;    ///< samples a step
  int threads = 1;           ///< that the kernels use
  int steps = 20;            ///< timed steps kept, and as many without timers inside
  int warm_up = 3;           ///< steps before them that count for nothing
  std::uint64_t seed = 1;
  Optimizer optimizer{.learning_rate = 1e-3};
  PartOptions part{};  ///< of the model
  /// Networks on the same parameters that take turns, step by step, as micro-batches in flight do: each finds
  /// less of its own in the caches than one network that trains alone.
  int copies = 1;
  double tolerance =
      0.02;  ///< between the sum over layers and a step without timers; outside, the trace is flagged
  double disturbance =
      0.03;          ///< a step whose wall and CPU time per thread differ by more is dropped and made again
  int attempts = 4;  ///< steps made at most, as a multiple of `steps`
  /// Ranks that capture together: what they exchange in each step, so that it leaves caches as training will.
  StepExchange exchange = {};
  /// The greatest of all ranks' figures, so that all drop the same steps.
  std::function<double(double)> worst = [](double own) { return own; };
  /// Called after each step with the share done and the time left; what it throws ends the capture.
  std::function<void(double share, Seconds left)> progress = {};
};

/// Two steps in a row.
struct StepPair {
  StepTimes inside, outside;
};

struct StepPairs {
  std::vector<StepPair> kept, disturbed;
};

/// Times every layer and pass of whole training steps on synthetic data, in place.
///
/// Timed steps read the clocks between the passes; each interval belongs to the pass that ended, so nothing
/// between the layers is lost; what reading the clocks costs is measured and taken off. Each is paired with a
/// step that is timed only from outside: where the 95 % bootstrap interval of (sum over layers) / (untimed
/// step) leaves 1 +- tolerance, the trace says so in `flags`. All samples of kept pairs are in the trace,
/// wall and CPU time (all threads of the process).
class Capture {
 public:
  /// @throws InputError if the backend lacks a layer; LimitError if the machine's memory cannot hold the
  /// network
  Capture(Backend& backend, const Model& model, CaptureOptions options);

  /// Warms up and takes so many more pairs of steps, or gives up after `attempts` times as many. Called
  /// several times with other work between, it sees the machine in more than one mood.
  void measure(int pairs);
  /// So many pairs in all, in place of `options.steps`: for who finds out how long a step takes.
  void want(int pairs) { options_.steps = pairs; }
  /// So many steps before each `measure`, in place of `options.warm_up`.
  void warm_up(int steps) { options_.warm_up = steps; }
  /// @throws InputError if half of `options.steps` pairs could not be had undisturbed
  Trace trace();
  /// The network, for who goes on with it where it lies in memory; nothing can be captured after.
  std::unique_ptr<Network> take_network() { return std::move(copies_.front()); }

 private:
  void add_copy(const Model& model);
  Network& next_copy();
  StepTimes step_inside(const Instant& clock_cost);
  StepTimes step_outside();
  StepPair measure_pair(const Instant& clock_cost);
  void report(double step_seconds) const;

  Backend& backend_;
  CaptureOptions options_;
  std::vector<std::unique_ptr<Network>> copies_;  ///< all on the parameters of the first
  std::size_t turn_ = 0;
  StepPairs pairs_;
};

/// All of it at once.
Trace capture(Backend& backend, const Model& model, const CaptureOptions& options);

}  // namespace stepcast
