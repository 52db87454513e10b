#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace stepcast {

/// Labelled samples with random access.
class Dataset {
 public:
  virtual ~Dataset() = default;

  virtual std::int64_t samples() const = 0;
  /// Reads the input and the targets of one sample. The spans have the lengths that `SampleForm` gives. Any
  /// thread may call.
  virtual void read(std::int64_t sample, std::span<float> input, std::span<float> targets) const = 0;
};

/// Shapes of one sample: the network's input, and the targets that its loss compares the output with.
struct SampleForm {
  /// {channels, height, width}, {channels, depth, height, width}, {time, features}.
  std::vector<std::int64_t> input;
  /// {1}: one class or a yes-or-no answer; {height, width}: a class for every pixel.
  std::vector<std::int64_t> targets;
  std::int64_t classes = 2;  ///< targets are 0 .. classes - 1; 0: targets are any numbers
};

/// Number of elements of a shape: the product of its sizes.
std::size_t sample_numbers(const std::vector<std::int64_t>& shape);

/// The source of samples: a generator or files.
struct DataOptions {
  enum class Kind { images, mesh, sequences, showers, idx, cifar10, raw };

  Kind kind = Kind::images;
  std::int64_t samples = 4096;       ///< generated samples to train on
  std::int64_t test_samples = 1000;  ///< generated samples to evaluate on, never trained on
  double noise = 0.5;  ///< standard deviation of the noise of generated data, whose signal is of order 1
  std::uint64_t seed = 1;
  std::vector<std::string> train, test;                ///< files of samples; for idx, files of images
  std::vector<std::string> train_labels, test_labels;  ///< idx: files of labels
};

const std::vector<std::string>& data_kind_names();  ///< in the order of DataOptions::Kind
/// Whether samples of the kind are generated, not read from files.
bool is_generated(DataOptions::Kind kind);

}  // namespace stepcast
