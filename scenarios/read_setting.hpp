#pragma once

#include "platforms/link_bandwidths.hpp"
#include "scenarios/library.hpp"
#include "scenarios/read_passes.hpp"
#include "strategies/strategy.hpp"

namespace stepcast {

/// Times of micro-batches by `trace: NAME`, `trace: [NAME, ...]` or `trace: derived`. Refers to its
/// arguments.
/// @param passes  how often a step runs them, one entry a layer; empty: once
/// @throws InputError for a trace of another model
std::function<LayerTimes(std::int64_t)> read_times(const YamlValue& trace, const Model& model,
                                                   const Device& device, Library& library,
                                                   const std::vector<PassCounts>& passes);

/// Times of parts of the model from the same traces, the one of the nearest batch. Refers to its arguments.
std::function<Trace(const PartModel&)> read_part_traces(const YamlValue& trace, const Model& model,
                                                        const Device& device, Library& library);
/// Times of compression kernels on a device, from a file in models/compression/ (`cpu` where none is named):
/// as measured for a CPU, else derived. Refers to its arguments.
std::function<CompressionTimes(Compression)> read_compression_times(const std::optional<YamlValue>& name,
                                                                    const Device& device, Library& library);
/// The same for a host: the times as they were measured, on one core.
std::function<CompressionTimes(Compression)> read_host_compression_times(const std::optional<YamlValue>& name,
                                                                         Library& library);

/// Batch of the first trace; 1 for `derived`.
std::int64_t trace_batch(const YamlValue& trace, Library& library);

/// `memory:`; batch and precision are the strategy's to say.
MemoryOptions read_memory(const YamlValue& value);

/// `background:`: shares of links that other traffic takes.
void read_background(const YamlValue& value, const Platform& platform, LinkBandwidths& bandwidths);

}  // namespace stepcast
