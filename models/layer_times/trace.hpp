#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "core/keys.hpp"
#include "core/yaml.hpp"
#include "models/network/model.hpp"

namespace stepcast {

/// Times of one pass of one layer. Entry i belongs to timed step i. Empty if the layer has no such pass.
struct PassSamples {
  std::vector<double> seconds;      ///< wall time [s]
  std::vector<double> cpu_seconds;  ///< thread CPU time [s]; empty in derived traces
};

/// Time in which the host issues the kernels of each pass of a layer while the device is busy [s].
struct HostSeconds {
  double forward = 0, backward = 0, update = 0;
};

/// Times of all passes of one layer.
struct LayerTrace {
  std::string name;  ///< name of the layer in the model
  PassSamples forward, backward_data, backward_weights, update;
  std::string notes = {};  ///< algorithms and workspace that the library chose
  HostSeconds host = {};   ///< zeros: not known, or none
};

/// Times of every layer and pass in whole training steps of one model, batch and device.
///
/// `captured`: measured with real kernels (`stepcast capture`). `derived`: estimated for a device where the
/// times were not measured (docs/explanation/derived-traces.md).
struct Trace {
  enum class Kind { captured, derived };

  std::string name;
  Kind kind{};
  std::string model;       ///< name of the model
  std::int64_t batch = 1;  ///< samples per step
  std::string precision;   ///< "f32"
  std::string device;      ///< device that it was measured on, or derived for
  std::string library;     ///< kernel library and version
  int threads = 1;
  int ranks = 1;  ///< ranks timed at once; their samples follow one after the other
  /// Arrays of the parameters' size that the update reads and writes: momentum in one kernel reads three and
  /// writes two.
  double update_arrays = 5;
  std::string date, command, source;  ///< how the trace was made
  std::vector<std::string> flags;     ///< reasons to doubt it; printed with every result that used it
  /// Wall time of steps without timers inside, interleaved with the timed ones [s].
  std::vector<double> step_seconds;
  std::vector<double> step_cpu_seconds;    ///< thread CPU time of these steps [s]
  std::vector<double> graph_step_seconds;  ///< GPU: steps replayed as one CUDA graph [s]
  std::vector<std::string> notes;          ///< further observations: clocks, temperature, workspace
  std::vector<LayerTrace> layers;          ///< in the model's order
};

/// Reads a trace. @throws InputError
Trace read_trace(const YamlValue& value);

/// The passes in the order forward, backward-data, backward-weights, update.
std::array<const PassSamples*, 4> passes(const LayerTrace& layer);

/// Number of measured steps.
std::size_t samples_in(const Trace& trace);

/// Median of the samples; 0 s if there are none.
Seconds median(const std::vector<double>& samples);

/// Time of one training step: the sum of the medians of all layers and passes.
Seconds step_time(const Trace& trace);

/// Throws InputError unless the trace has the layers of the model, with the same names in the same order.
void check_fits(const Trace& trace, const Model& model);

/// Appends the samples of another capture of the same network and batch, made by another rank at the same
/// time. Workers replay the samples of both. @throws std::invalid_argument if their layers differ
void join(Trace& trace, const Trace& other);

// The keys of a trace and of a file of compression times (docs/reference/trace-files.md), from the fields of
// their readers.
const Keys& trace_keys();
const Keys& compression_file_keys();

/// The traces that the layer times of a batch size come from.
struct BatchNeighbors {
  const Trace* lower = nullptr;
  const Trace* upper = nullptr;  ///< = lower if that batch was captured, or lies outside the captured ones
  double upper_share = 0;        ///< weight of `upper` in the straight line between both

  bool between() const { return lower != upper; }
};

/// The trace of `batch`, or the traces of the next smaller and the next larger batch; outside the captured
/// batches the trace of the nearest one. @throws std::invalid_argument if there is no trace
BatchNeighbors batch_neighbors(const std::vector<const Trace*>& traces, std::int64_t batch);

/// A trace of `batch` between two captured ones: the median of every pass lies on the straight line between
/// the medians of both, the samples are those of the larger batch scaled to that median, and the flags are
/// those of both. Without step times. If `batch` was captured or lies outside: the unchanged neighbor.
Trace interpolated_trace(const BatchNeighbors& neighbors, std::int64_t batch);

}  // namespace stepcast
