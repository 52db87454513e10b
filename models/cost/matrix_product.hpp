#pragma once

#include <cstdint>
#include <vector>

#include "core/typed_numbers.hpp"

namespace stepcast {

struct Device;

/// A product of matrices, [rows x inner] x [inner x columns], of one sample.
struct MatrixProduct {
  /// What the samples of a batch make larger.
  enum class Samples {
    rows,
    inner,     ///< the gradient of weights sums over the samples
    products,  ///< each sample has a product of its own
  };

  double rows = 1, columns = 1, inner = 1;
  Samples samples = Samples::rows;
  double together = 1;  ///< products of this shape in one kernel: the heads of attention
  double in_turn = 1;   ///< kernels of this shape, one after another: the time steps of an LSTM

  Flops flops() const { return {2 * rows * columns * inner * together * in_turn}; }  ///< per sample
};

/// Time of a product on a device with KernelShares. A multiprocessor computes one tile of the result after
/// another:
///
///   waves x (2 x tile rows x tile columns x inner / (share x tile share x peak / multiprocessors) + tile)
///   waves = ceil(tiles / multiprocessors), tile share = 1 / (1 + 8 / tile rows + 8 / tile columns)
///
/// The library takes the fastest of several tiles, and may divide the inner
/// dimension among multiprocessors, which adds the sum of their parts. Without a number of multiprocessors
/// the product takes flops / (share x peak).
/// @param share  share of the peak that a multiprocessor reaches in a tile without end
/// @param tile   fixed time of a tile: until its first operands are there, and to write its results
Seconds product_time(const MatrixProduct& product, std::int64_t batch, const Device& device, double share,
                     Seconds tile);

}  // namespace stepcast
