#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/random.hpp"
#include "core/words.hpp"

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
  /// {1}: one class or a yes-or-no answer; {height, width}: a class for every pixel; {0}: none.
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
  /// K-fold cross-validation: with `folds` > 1, samples n of the training data with n mod folds = fold are
  /// held out. Networks train on the others, and at most `test_samples` of the held-out ones evaluate them in
  /// place of the test data.
  int fold = 0, folds = 1;
};

const Words<DataOptions::Kind>& data_kind_words();
/// True if samples of the kind are generated, not read from files.
bool is_generated(DataOptions::Kind kind);

/// The mini-batches of one of several workers.
///
/// Mini-batch t of worker w of W workers, with b samples each, holds samples (t W + w) b to (t W + w + 1) b
/// - 1. After the last sample the data set begins again. Together the workers take the samples that one
/// worker with mini-batches of W b samples would take. A worker reads only its own samples, and each only
/// once.
class Batches {
 public:
  /// The worker, and the samples of its mini-batches.
  struct Split {
    int worker = 0, workers = 1;
    std::int64_t batch = 1;
  };

  Batches(const Dataset& data, const SampleForm& form, const Split& split);

  struct Batch {
    std::vector<float> inputs, targets;
  };

  /// Reads the first `count` mini-batches ahead of time. @param after_each  called after each mini-batch
  void prepare(std::int64_t count, const std::function<void()>& after_each);
  /// The next mini-batch; valid until this object is destroyed.
  const Batch& next();
  void restart() { next_ = 0; }
  /// Makes mini-batch `number` of this worker the next one.
  void seek(std::int64_t number) { next_ = number; }

 private:
  const Batch& batch(std::int64_t number);

  const Dataset& data_;
  std::size_t input_, targets_;  ///< elements of one sample
  Split split_;
  std::map<std::int64_t, Batch> known_;  ///< by the number of the first sample
  std::int64_t next_ = 0;
};

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
/// Without targets, all samples are showers.
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
  std::int64_t below(std::uint32_t n, std::int64_t count) const { return uniform_index(at(n), count); }

 private:
  RandomKey at(std::uint32_t n) const {
    RandomKey key = key_;
    key.item = n;
    return key;
  }

  RandomKey key_;
};

/// Independent streams of random numbers of one seed: for class patterns, for samples, for noise, for the
/// inputs of a generator.
enum DrawStream : std::uint32_t { kPatterns, kSample, kNoise, kInputs };

}  // namespace stepcast
