#pragma once

#include <vector>

#include "kernels/network/network.hpp"
#include "strategies/collectives/schedule.hpp"

namespace stepcast {

/// Maps elements of a model's parameters (or gradients), numbered in the model's order, to elements of a
/// network's memory, where arrays are padded and aligned.
class ParameterLayout {
 public:
  explicit ParameterLayout(const Network& network);

  std::int64_t model_elements() const { return arrays_.back().model; }
  std::int64_t stored_elements() const { return arrays_.back().stored; }
  /// The slice of the memory that holds a slice of the model. Adjacent slices of the model are adjacent in
  /// memory; the slice of a whole array includes its padding.
  Slice stored(const Slice& of_model) const;

 private:
  struct Start {
    std::int64_t model = 0, stored = 0;
  };

  std::int64_t stored(std::int64_t of_model) const;

  std::vector<Start> arrays_;  ///< first element of each array, in order; the last entry is the end
};

}  // namespace stepcast
