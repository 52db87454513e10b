#pragma once

#include <string>
#include <vector>

#include "core/words.hpp"
#include "core/yaml.hpp"
#include "models/cost/device.hpp"
#include "models/layer_times/trace.hpp"

namespace stepcast {

/// Gradient compression methods; strategies/arithmetic implements them.
enum class Compression { none, one_bit, fp16, top_k };
const Words<Compression>& compression_words();

/// Time that a device takes for one byte of fp32 gradient.
struct CompressionCost {
  double quantize = 0, restore = 0;  ///< [s/B]
};

/// Times of the compression kernels on one processor (`models/compression/NAME.yaml`), in seconds per byte
/// of fp32 gradient. Entry i belongs to repeat i.
struct CompressionTrace {
  /// Times of one compression method.
  struct Codec {
    Compression kind{};
    PassSamples quantize, restore;
  };

  std::string name, device, date, command, source;
  int threads = 1;
  double gradient_bytes = 0;  ///< size of the array that was compressed
  std::int64_t rows = 1;      ///< one_bit: elements of a column
  double density = 1;         ///< top_k: share of the elements that are sent
  PassSamples copy;           ///< time of a copy of the array; each byte is read and written
  std::vector<Codec> codecs;  ///< one for each method but none
};

/// Reads `models/compression/NAME.yaml`. @throws InputError
CompressionTrace read_compression(const YamlValue& value);

/// Medians of the CPU times. The kernels run on one thread and never wait, so that wall time would only add
/// the effect of other processes.
CompressionCost cost_of(const CompressionTrace& trace, Compression kind);

/// Estimate for a device on which the kernels were not measured. Every kernel keeps its time relative to a
/// copy, and a copy of one byte moves 2 bytes at kStreamingShare of the memory bandwidth of the device. For
/// kernels that do more than stream (top_k) this is an upper bound: a kernel written for the device could be
/// faster.
CompressionCost derived_cost(const CompressionTrace& trace, Compression kind, const Device& device);

/// The YAML text of a file of compression times; `read_compression` reads it back.
std::string to_yaml(const CompressionTrace& trace);

/// Medians and rates, one line for each kernel.
std::string compression_table(const CompressionTrace& trace);

/// CompressionTrace::device of a CPU that compresses the gradients of a device, with the copies from and to
/// the device: "AMD EPYC, 16 cores (1 used) beside NVIDIA H100".
std::string beside_device(const std::string& processor, const std::string& device);

/// True if the trace was measured on a CPU that compresses the gradients of another device. Its times then
/// hold for that device unchanged.
bool is_beside_device(const CompressionTrace& trace);

}  // namespace stepcast
