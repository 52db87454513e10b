#pragma once

#include <cstdint>
#include <span>
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

/// A file with random access. Several threads may read at once.
class BinaryFile {
 public:
  /// @throws InputError if it cannot be opened
  explicit BinaryFile(const std::string& name);
  BinaryFile(BinaryFile&& other) noexcept;
  BinaryFile& operator=(BinaryFile&&) = delete;
  ~BinaryFile();

  const std::string& name() const { return name_; }
  std::int64_t size() const { return size_; }
  /// Fills the span with the bytes from `begin` on. @throws InputError if the file ends before
  void read(std::int64_t begin, std::span<unsigned char> bytes) const;
  /// The big-endian integer at `begin`.
  std::uint32_t big_endian(std::int64_t begin) const;

 private:
  std::string name_;
  int descriptor_ = -1;
  std::int64_t size_ = 0;
};

}  // namespace stepcast
