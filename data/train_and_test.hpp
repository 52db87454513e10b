#pragma once

#include <memory>
#include <string>

#include "data/dataset.hpp"

namespace stepcast {

/// Images and labels of the MNIST family: big-endian IDX files, unsigned bytes, not compressed. Pixels become
/// 0 to 1.
/// Source: Y. LeCun, C. Cortes, C. Burges, "The MNIST database of handwritten digits", file formats.
std::unique_ptr<Dataset> idx_files(const std::string& images, const std::string& labels,
                                   const SampleForm& form);

/// CIFAR-10's binary version: a label byte and 3 x 32 x 32 bytes a sample. Pixels become 0 to 1.
/// Source: A. Krizhevsky, "The CIFAR-10 dataset", binary version.
std::unique_ptr<Dataset> cifar10_files(const std::vector<std::string>& files, const SampleForm& form);

/// Little-endian float32 numbers: the input of a sample, then its targets, then the next sample.
std::unique_ptr<Dataset> raw_files(const std::vector<std::string>& files, const SampleForm& form);

// All functions throw InputError for files that are missing, truncated or of another form, and for labels
// that are not classes.

/// Samples to train on, and held-out samples to evaluate on.
struct TrainAndTest {
  std::unique_ptr<Dataset> train, test;
};

/// Opens files or sets up generators.
/// @throws InputError for a form that the kind does not have, and for invalid files
TrainAndTest make_data(const DataOptions& options, const SampleForm& form);

}  // namespace stepcast
