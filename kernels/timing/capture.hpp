#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/typed_numbers.hpp"
#include "kernels/network/backend.hpp"
#include "kernels/network/network.hpp"
#include "kernels/timing/step_timer.hpp"
#include "models/layer_times/trace.hpp"
#include "models/network/model.hpp"

namespace stepcast {

/// An estimate with its 95 % confidence interval.
struct Interval {
  double low, middle, high;
};

/// Median of numerator[i] / denominator[i] with its 95 % interval by the percentile bootstrap (2000 resamples
/// of the pairs). Effects that both steps of a pair share, such as a slow drift of the machine, cancel.
/// Source: B. Efron, R. Tibshirani, "An introduction to the bootstrap", 1993, chapter 13.
/// @throws std::invalid_argument if the lengths differ or are zero
Interval median_of_ratios(const std::vector<double>& numerator, const std::vector<double>& denominator,
                          std::uint64_t seed);

/// Adds a flag to the trace if the 95 % bootstrap interval of (sum over layers) / (step without timers
/// inside) leaves 1 +- tolerance. Entry i of both lists belongs to one pair of steps [s].
/// @param seed  of the bootstrap's resamples
void flag_difference(const std::vector<double>& inside, const std::vector<double>& outside, double tolerance,
                     std::uint64_t seed, Trace& trace);

/// Adds a flag to the trace if the sum of the layers' medians, which simulations start from, differs from the
/// median step by more than the tolerance, as it may when samples scatter.
void flag_medians(double tolerance, Trace& trace);

/// The samples of one pass of a layer.
PassSamples& samples_of(LayerTrace& layer, Pass pass);

struct CaptureOptions {
  std::string name = {};     ///< name of the trace
  std::string command = {};  ///< command line that repeats the capture, for the trace file
  std::int64_t batch = 1;    ///< samples per step
  int threads = 1;           ///< threads of the kernels
  int steps = 20;            ///< pairs of steps to keep: one timed between passes, one timed as a whole
  int warm_up = 3;           ///< steps before them that are not timed
  std::uint64_t seed = 1;
  Optimizer optimizer{.learning_rate = 1e-3};
  PartOptions part{};  ///< the part of the model to capture
  /// Networks on the same parameters that take turns, step by step, as micro-batches in flight do: each finds
  /// less of its data in the caches than one network that trains alone.
  int copies = 1;
  /// Largest relative difference between the sum over layers and a step without timers inside; beyond it the
  /// trace is flagged.
  double tolerance = 0.02;
  /// Largest relative difference between a step's wall time and its CPU time per thread; beyond it the step
  /// counts as disturbed and is repeated.
  double disturbance = 0.03;
  int attempts = 4;  ///< largest number of steps, as a multiple of `steps`
  /// The exchanges of ranks that capture together, so that caches are used as in training.
  StepExchange exchange = {};
  /// Returns the largest value of all ranks, so that all ranks drop the same steps.
  std::function<double(double)> max_over_ranks = [](double own) { return own; };
  /// Called after each step with the share that is done and the time left; an exception ends the capture.
  std::function<void(double share, Seconds left)> progress = {};
};

/// A captured trace of today, without times, precision and source.
Trace captured_trace(const Backend& backend, const Model& model, const CaptureOptions& options);

/// Two consecutive steps: one timed between its passes, one timed as a whole.
struct StepPair {
  StepTimes by_pass, whole;
};

struct StepPairs {
  std::vector<StepPair> kept, disturbed;
};

/// Times every pass of every layer within whole training steps on synthetic data.
///
/// In the first step of a pair the clocks are read between passes. Each interval belongs to the pass that
/// ended, so no time between layers is lost; the measured cost of reading the clocks is subtracted. The
/// second step is timed only as a whole. If the 95 % bootstrap interval of (sum over layers) / (whole step)
/// leaves 1 +- tolerance, the trace gets a flag. The trace holds all samples of the kept pairs, wall time and
/// CPU time (all threads of the process).
class Capture {
 public:
  /// @throws InputError if the backend lacks a layer; LimitError if the machine's memory cannot hold the
  /// network
  Capture(Backend& backend, const Model& model, CaptureOptions options);

  /// Warms up and takes `pairs` more pairs of steps, or gives up after `attempts` times that number. Several
  /// calls with other work between them sample the machine at different times.
  void measure(int pairs);

  /// Replaces `options.steps`, for callers that choose the number of pairs after the first steps were timed.
  void set_pairs(int pairs) { options_.steps = pairs; }

  /// Replaces `options.warm_up` for later calls of `measure`.
  void set_warm_up(int steps) { options_.warm_up = steps; }

  /// Whether `trace` has enough undisturbed pairs: half of `options.steps`.
  bool has_enough() const { return 2 * std::ssize(pairs_.kept) >= options_.steps; }

  /// The trace of the pairs that were taken since the last trace.
  /// @throws InputError if fewer than half of `options.steps` pairs were undisturbed
  Trace trace();

  /// The network, for callers that go on training it between captures or after them.
  std::shared_ptr<Network> network() const { return copies_.front(); }

 private:
  void add_copy(const Model& model);
  Network& next_copy();
  StepTimes step_by_pass(const Instant& clock_cost);
  StepTimes whole_step();
  StepPair measure_pair(const Instant& clock_cost);
  void report(double step_seconds) const;

  Backend& backend_;
  CaptureOptions options_;
  std::vector<std::shared_ptr<Network>> copies_;  ///< all use the parameters of the first
  std::size_t turn_ = 0;
  StepPairs pairs_;
};

/// Captures `options.steps` pairs and returns the trace.
Trace capture(Backend& backend, const Model& model, const CaptureOptions& options);

/// Captures a trace on a GPU, like `capture`, with CUDA events on the one stream instead of clocks. The trace
/// also holds steps without events inside and steps replayed as one CUDA graph; its notes name algorithms,
/// workspace, clocks and temperature. Ignores `threads` and `disturbance`, because no other program uses the
/// GPU.
/// @throws InputError if there is no such device or a layer is not supported, LimitError if its memory is
/// full
Trace capture_on_gpu(const GpuOptions& gpu, const Model& model, const CaptureOptions& options);

/// Times of whole steps without events inside [s], after `warm_up` others.
std::vector<double> time_steps_on_gpu(const GpuOptions& gpu, const Model& model,
                                      const CaptureOptions& options);

/// Says before any measurement that a capture cannot fit: neither its memory, nor a tensor of 2^31 elements
/// and more in a layer that cuDNN computes.
/// @throws LimitError
void check_capture_fits(const GpuOptions& gpu, const Model& model, const CaptureOptions& options);

/// Memory of the device that is free now. Makes a context on the device.
Bytes free_gpu_memory(int device);
/// @throws InputError if there is no such GPU. Makes no context.
void require_gpu(int device);
std::string gpu_name(int device);

}  // namespace stepcast
