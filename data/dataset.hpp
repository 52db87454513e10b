#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace stepcast {

/// Labelled samples, each of which can be read by itself, in any order.
class Dataset {
 public:
  virtual ~Dataset() = default;

  virtual std::int64_t samples() const = 0;
  /// One sample's input and targets, of the lengths that `SampleForm` says. Any thread may call.
  virtual void read(std::int64_t sample, std::span<float> input, std::span<float> targets) const = 0;
};

/// What a network takes: one sample's input and what its loss compares it with.
struct SampleForm {
  std::vector<std::int64_t>
      input;  ///< {channels, height, width}, {channels, depth, height, width}, {time, features}
  std::vector<std::int64_t>
      targets;               ///< {1}: a class; {height, width}: a class a pixel; {1} also for yes or no
  std::int64_t classes = 2;  ///< targets are 0 .. classes - 1; 0: any number
};

/// Of a sample: the product of a shape.
std::size_t sample_numbers(const std::vector<std::int64_t>& shape);

/// Where samples come from.
struct DataOptions {
  enum class Kind { images, mesh, sequences, showers, idx, cifar10, raw };

  Kind kind = Kind::images;
  std::int64_t samples = 4096;       ///< of generated data, to train on
  std::int64_t test_samples = 1000;  ///< held out
  double noise = 0.5;  ///< of generated data: standard deviation, where the signal is of order 1
  std::uint64_t seed = 1;
  std::vector<std::string> train, test;                ///< files; idx: of images
  std::vector<std::string> train_labels, test_labels;  ///< idx
};

const std::vector<std::string>& data_kind_names();  ///< in the order of DataOptions::Kind
bool is_generated(DataOptions::Kind kind);

struct TrainAndTest {
  std::unique_ptr<Dataset> train, test;
};

/// @throws InputError for a form that the kind cannot serve, and files that are not what they should be
TrainAndTest make_data(const DataOptions& options, const SampleForm& form);

}  // namespace stepcast
