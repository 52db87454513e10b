#pragma once

#include <memory>
#include <span>
#include <vector>

#include "kernels/network/network.hpp"
#include "models/partition/tensor_shard.hpp"

namespace stepcast {

/// The sum, over ranks that share layers, of the gradients of the layers whose tokens they divide
/// (SharedPart::summed): copies between the gradients of a network and the buffer of the sum.
class TokenSums {
 public:
  /// @param network  outlives this object
  TokenSums(Network& network, const SharedPart& part);

  std::span<float> buffer() const { return {memory_.get(), elements_}; }
  void pack() { copy(true); }
  void unpack() { copy(false); }

 private:
  struct Run {
    std::size_t begin, size;  ///< in the memory of all gradients
  };

  void copy(bool out);

  Network& network_;
  std::vector<Run> runs_;
  std::size_t elements_ = 0;
  std::shared_ptr<float> memory_;
};

}  // namespace stepcast
