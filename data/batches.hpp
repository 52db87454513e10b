#pragma once

#include <functional>
#include <map>

#include "data/dataset.hpp"

namespace stepcast {

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

 private:
  const Batch& batch(std::int64_t number);

  const Dataset& data_;
  std::size_t input_, targets_;  ///< elements of one sample
  Split split_;
  std::map<std::int64_t, Batch> known_;  ///< by the number of the first sample
  std::int64_t next_ = 0;
};

}  // namespace stepcast
