#pragma once

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

/// Little-endian float32: a sample's input, then its targets, then the next sample.
std::unique_ptr<Dataset> raw_files(const std::vector<std::string>& files, const SampleForm& form);

// All throw InputError for files that are missing, cut short, of another form, or with a label that is no
// class.

}  // namespace stepcast
