#pragma once

#include <vector>

#include "core/yaml.hpp"
#include "models/layer_times/trace.hpp"
#include "models/network/model.hpp"
#include "platforms/topology.hpp"
#include "scenarios/reader/library.hpp"
#include "strategies/plan/setting.hpp"

namespace stepcast {

/// The number of times that a training step runs each pass of one layer. A network whose parts are trained in
/// turn, such as a GAN, runs some passes more than once.
struct PassCounts {
  double forward = 1, backward_data = 1, backward_weights = 1, update = 1;
};

/// Reads `passes:`, a list of {layers, forward, backward_data, backward_weights, update}; `layers` is a name
/// in which * stands for any text. If several rows match a layer, the last one counts.
/// @returns one entry for each layer
/// @throws InputError for a row that matches no layer
std::vector<PassCounts> read_passes(const YamlValue& value, const Model& model);

/// The trace with the time of every pass multiplied by its count.
Trace repeated(Trace trace, const std::vector<PassCounts>& counts);

/// Reads `trace: NAME`, `trace: [NAME, ...]` or `trace: derived`. The result maps the size of a micro-batch
/// to layer times and keeps references to the arguments.
/// @param passes  how often a step runs the passes of each layer; empty: once
/// @throws InputError for a trace of another model
std::function<LayerTimes(std::int64_t)> read_times(const YamlValue& trace, const Model& model,
                                                   const Device& device, Library& library,
                                                   const std::vector<PassCounts>& passes);

/// Layer times of a part of the model by the rule of `part_trace`. The result keeps references to the
/// arguments.
std::function<Trace(const PartModel&)> read_part_traces(const YamlValue& trace, const Model& model,
                                                        const Device& device, Library& library);
/// Times of compression kernels on a device, from a file in models/compression/ (default: `cpu`). The times
/// are measured for CPUs, and derived for other devices. The result keeps references to the arguments.
std::function<CompressionTimes(Compression)> read_compression_times(const std::optional<YamlValue>& name,
                                                                    const Device& device, Library& library);
/// Times of compression kernels on a host, as measured on one core. The result keeps references to the
/// arguments.
std::function<CompressionTimes(Compression)> read_host_compression_times(const std::optional<YamlValue>& name,
                                                                         Library& library);

/// The batch of the first trace; 1 for `trace: derived`.
std::int64_t trace_batch(const YamlValue& trace, Library& library);

/// Reads `kernels:`. @returns the device with these kernels
/// @throws InputError if the trace is not derived, or the device does not have the kernels
Device read_kernels(const YamlValue& value, const YamlValue& trace, const Device& device);

/// Reads `memory:`. The strategy sets the batch and the precision.
/// @param kernels  whose attention and optimizer are counted where `memory` does not name others
MemoryOptions read_memory(const std::optional<YamlValue>& value, const KernelChoice& kernels = {});

/// Reads `background:`, the shares of link bandwidth that other traffic takes, and reduces the bandwidths.
void read_background(const YamlValue& value, const Platform& platform, LinkBandwidths& bandwidths);

}  // namespace stepcast
