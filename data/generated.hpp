#pragma once

#include <cstdint>

#include "core/random.hpp"
#include "data/dataset.hpp"

namespace stepcast {

// Reproducible tasks. Sample number i is a function of the seed and of i alone (counter-based random
// numbers), so that every rank generates its own samples and no two ranks share one.

/// Images of `classes` smooth patterns with noise. The patterns are shifted by up to two pixels and differ in
/// strength. A network of one convolution and one dense layer can classify them.
std::unique_ptr<Dataset> generated_images(const DataOptions& options, const SampleForm& form,
                                          std::int64_t first, std::int64_t count);

/// Fields with discs, given as channels of alternating sign with noise. The label of a pixel is 1 where a
/// disc covers it. Targets may have a coarser resolution than the input.
std::unique_ptr<Dataset> generated_mesh(const DataOptions& options, const SampleForm& form,
                                        std::int64_t first, std::int64_t count);

/// Sequences whose features oscillate; the class is the number of periods, the phase is random.
std::unique_ptr<Dataset> generated_sequences(const DataOptions& options, const SampleForm& form,
                                             std::int64_t first, std::int64_t count);

/// Energy in the cells of a calorimeter, one channel in depth, height and width. Label 1: a shower, whose
/// profile along the depth is that of E. Longo, I. Sestili, NIM 128 (1975) 283, t^a exp(-b t), around an axis
/// that starts near the middle. Label 0: as much energy and as many hit cells, but without a profile.
std::unique_ptr<Dataset> generated_showers(const DataOptions& options, const SampleForm& form,
                                           std::int64_t first, std::int64_t count);

/// Random numbers of one generated sample. Number n does not depend on the order of the calls.
class Draws {
 public:
  Draws(std::uint64_t seed, std::int64_t sample, std::uint32_t stream)
      : key_{.seed = seed,
             .purpose = Purpose::sample,
             .worker = stream,
             .step = static_cast<std::uint32_t>(sample),
             .item = 0} {}

  double uniform(std::uint32_t n) const { return stepcast::uniform(at(n)); }
  double uniform(std::uint32_t n, double low, double high) const { return low + (high - low) * uniform(n); }
  double normal(std::uint32_t n) const { return stepcast::normal(at(n)); }
  std::int64_t below(std::uint32_t n, std::int64_t count) const {
    return static_cast<std::int64_t>(uniform_index(at(n), static_cast<std::size_t>(count)));
  }

 private:
  RandomKey at(std::uint32_t n) const {
    RandomKey key = key_;
    key.item = n;
    return key;
  }

  RandomKey key_;
};

/// Independent streams of random numbers of one seed: for class patterns, for samples, for noise.
enum DrawStream : std::uint32_t { kPatterns, kSample, kNoise };

}  // namespace stepcast
