#pragma once

#include <functional>
#include <map>

#include "data/dataset.hpp"

namespace stepcast {

/// The mini-batches of one worker of several. Mini-batch t of worker w of W holds samples (t W + w) b to
/// (t W + w + 1) b - 1, and the set begins again when it is through: W workers together take what one worker
/// with W b samples would. A worker reads only what it takes, and once.
class Batches {
 public:
  struct Split {
    int worker = 0, workers = 1;
    std::int64_t batch = 1;
  };

  Batches(const Dataset& data, const SampleForm& form, const Split& split);

  struct Batch {
    std::vector<float> inputs, targets;
  };

  /// Reads those of the first `count` mini-batches ahead. @param beat  called after each
  void prepare(std::int64_t count, const std::function<void()>& beat);
  const Batch& next();
  void begin_again() { next_ = 0; }

 private:
  const Batch& batch(std::int64_t number);

  const Dataset& data_;
  std::size_t input_, targets_;  ///< elements of a sample
  Split split_;
  std::map<std::int64_t, Batch> known_;  ///< by the number of the first sample
  std::int64_t next_ = 0;
};

}  // namespace stepcast
