#include "strategies/block_figures.hpp"

#include <algorithm>

#include "strategies/compression_figures.hpp"

namespace stepcast {
namespace {

/// Mean over blocks (without the first, which waits for the first split, where there are others) of what
/// `pick` takes of the programs' times. All programs end a block before one marks anything of the next.
double mean_of_blocks(const Records& records, const char* phase, int blocks, bool latest) {
  const auto found = records.find(phase);
  if (found == records.end() || blocks == 0) return 0;
  const std::vector<double>& times = found->second;
  const std::size_t programs = times.size() / static_cast<std::size_t>(blocks);
  const std::size_t first = blocks > 1 ? 1 : 0;
  double sum = 0;
  for (std::size_t block = first; block < static_cast<std::size_t>(blocks); ++block) {
    const auto begin = times.begin() + static_cast<std::ptrdiff_t>(block * programs);
    const auto end = begin + static_cast<std::ptrdiff_t>(programs);
    sum += latest ? *std::max_element(begin, end) : *std::min_element(begin, end);
  }
  return sum / static_cast<double>(blocks - static_cast<int>(first));
}

/// Of what a block changed, where that is compressed.
Figures codec_figures(const BlockSetup& setup) {
  if (setup.compression.kind == Compression::none || setup.training.replicas == 1) return {};
  const auto elements = static_cast<std::int64_t>(setup.parameters.value / 4) / setup.workers_per_replica;
  return compression_figures(wire_bytes(setup.compression, elements),
                             compression_seconds(setup.compression, elements, setup.training.replicas));
}

}  // namespace

std::function<Figures(const Records&, double)> block_figures(const BlockSetup& setup, double samples) {
  const int blocks = setup.training.blocks;
  const double alone =
      setup.training.split_seconds.value + setup.training.mini_batches * setup.training.step_overhead.value;
  const double sweep_blocks = setup.epoch_samples / samples;
  // Validations at their moments are few, and the simulated blocks may have none: all blocks' share.
  const double every = setup.training.validation_every;
  const double share = every > 0 ? samples / every * setup.training.validation_work.duration.value : 0;
  const Figures codec = codec_figures(setup);
  return [=](const Records& records, double seconds) {
    // Until the last worker is ready; what the others wait for it is no part of the aggregation.
    const double optimize = mean_of_blocks(records, "optimize", blocks, true);
    const double aggregate = mean_of_blocks(records, "aggregate", blocks, false);
    const double validate = every > 0 ? share : mean_of_blocks(records, "validate", blocks, false);
    const double whole = every > 0 ? optimize + aggregate + validate : seconds;
    Figures figures{{"block_seconds", seconds},
                    {"block_optimize_seconds", optimize},
                    {"block_aggregate_seconds", aggregate},
                    {"block_validate_seconds", validate},
                    {"overhead", (whole - validate) / alone - 1}};
    figures.insert(figures.end(), codec.begin(), codec.end());
    if (sweep_blocks == 0) return figures;
    figures.emplace_back("sweep_optimize_minutes", sweep_blocks * optimize / 60);
    figures.emplace_back("sweep_aggregate_minutes", sweep_blocks * aggregate / 60);
    figures.emplace_back("sweep_validate_minutes", sweep_blocks * validate / 60);
    figures.emplace_back("sweep_minutes", sweep_blocks * whole / 60);
    return figures;
  };
}

}  // namespace stepcast
