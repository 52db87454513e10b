#pragma once

#include "data/dataset.hpp"

namespace stepcast {

// Tasks that anyone can make again: sample number i is a function of the seed and i alone (counter-based
// random numbers), so that every rank makes its own samples and no two share one.

/// Images of `classes` smooth patterns, moved by up to two pixels, of differing strength, under noise. One
/// convolution and a dense layer can tell them apart.
std::unique_ptr<Dataset> generated_images(const DataOptions& options, const SampleForm& form,
                                          std::int64_t first, std::int64_t count);

/// Fields with discs in them, seen through channels of differing sign under noise; the label of a pixel is
/// whether a disc covers it. Targets may be coarser than the input.
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

}  // namespace stepcast
