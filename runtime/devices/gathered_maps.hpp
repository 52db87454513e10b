#pragma once

#include <memory>

#include "kernels/network/network.hpp"
#include "models/partition/tensor_shard.hpp"

namespace stepcast {

/// The exchange of one GatheredInput of a network: an all-gather gives every rank the whole output of a
/// layer, and a reduce-scatter of the readers' error signals gives each rank those of its own part. Block n
/// of the buffer is the part of rank n, except that a ring all-gather begins, and a ring reduce-scatter ends,
/// with part n + 1 at rank n; so rank n's part is block n + 1. All buffers are memory of the backend.
class GatheredMaps {
 public:
  /// @param place  of this rank among those that share the layer; the network and the input outlive this
  GatheredMaps(Network& network, const GatheredInput& input, int place, std::int64_t samples);

  /// The buffer of both collectives.
  std::span<float> buffer() const { return {blocks_.get(), elements_}; }
  void pack_output();
  void unpack_outputs();
  void pack_errors();
  void unpack_errors();
  /// Takes this rank's part of error signals that every rank has whole.
  void keep_own_errors();

 private:
  /// Copy from part `place`, row-major, to its place in the whole samples, and back.
  BoxMove scatter(int place) const;
  BoxMove gather(int place) const;
  float* block(int place) const;
  void sum_errors();

  Network& network_;
  Backend& backend_;
  const GatheredInput& input_;
  int place_;
  std::int64_t samples_;
  std::size_t elements_;  ///< of all samples
  std::shared_ptr<float> blocks_, whole_, scratch_;
};

}  // namespace stepcast
