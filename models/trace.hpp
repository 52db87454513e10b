#pragma once

#include <string>
#include <vector>

#include "core/yaml.hpp"

namespace stepcast {

/// Measured times of one pass of one layer; entry i belongs to timed step i. Empty: the layer has no such
/// pass.
struct PassSamples {
  std::vector<double> seconds;      ///< wall [s]
  std::vector<double> cpu_seconds;  ///< thread CPU time [s]; empty in derived traces
};

struct LayerTrace {
  std::string name;  ///< as in the model
  PassSamples forward, backward_data, backward_weights, update;
  std::string notes = {};  ///< what the library chose: algorithms and their workspace
};

/// Seconds of every layer and pass of whole training steps of one model, batch and device.
///
/// `captured`: what kernels measured (`stepcast capture`). `derived`: a captured trace carried over to a
/// device that was not at hand (docs/derived-traces.md).
struct Trace {
  enum class Kind { captured, derived };

  std::string name;
  Kind kind{};
  std::string model;       ///< name of the model
  std::int64_t batch = 1;  ///< samples a step
  std::string precision;   ///< "f32"
  std::string device;      ///< what it ran on, or is carried over to
  std::string library;     ///< kernel library and version
  int threads = 1;
  int ranks = 1;                      ///< that were timed at once; samples of the first, then of the next
  std::string date, command, source;  ///< how it was made
  std::vector<std::string> flags;     ///< reasons to doubt it; printed with every result that used it
  std::vector<double>
      step_seconds;  ///< wall of steps without timers inside, interleaved with the timed ones [s]
  std::vector<double> step_cpu_seconds;    ///< the same [s]
  std::vector<double> graph_step_seconds;  ///< GPU: steps replayed as one CUDA graph [s]
  std::vector<std::string> notes;          ///< what else was seen: clocks, temperature, workspace
  std::vector<LayerTrace> layers;          ///< in the model's order
};

/// Reads a trace; throws InputError.
Trace read_trace(const YamlValue& value);

}  // namespace stepcast
