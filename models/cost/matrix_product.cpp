#include "models/cost/matrix_product.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "models/cost/device.hpp"

namespace stepcast {
namespace {

struct Tile {
  double rows, columns;
};

/// Tiles of cuBLAS and CUTLASS, as the names of their kernels give them.
constexpr Tile kTiles[] = {{256, 128}, {128, 256}, {128, 128}, {256, 64}, {64, 256}, {128, 64},
                           {64, 128},  {64, 64},   {128, 32},  {32, 128}, {64, 32},  {32, 64},
                           {32, 32},   {128, 16},  {16, 128},  {64, 16},  {16, 64}};

/// Parts of the inner dimension.
constexpr double kParts[] = {1, 2, 3, 4, 5, 6, 8, 12, 16, 24, 32};

/// Share of a tile of `tile` in the rate of one without end: it loads rows + columns for rows x columns
/// products.
/// Source: fitted on the products of models/measured and models/traces; 4 to 8 fit alike.
double tile_share(const Tile& tile) {
  constexpr double kLoad = 8;
  return 1 / (1 + kLoad / tile.rows + kLoad / tile.columns);
}

MatrixProduct of_batch(MatrixProduct product, double samples) {
  switch (product.samples) {
    case MatrixProduct::Samples::rows:
      product.rows *= samples;
      break;
    case MatrixProduct::Samples::inner:
      product.inner *= samples;
      break;
    case MatrixProduct::Samples::products:
      product.together *= samples;
      break;
  }
  return product;
}

/// Time to add the parts of a result in fp32: each is written once and read once, but for the last one.
Seconds sum_of_parts(const MatrixProduct& product, double parts, const Device& device) {
  if (parts == 1) return {};
  constexpr double kElement = 4;  // bytes
  const Bytes moved{kElement * (parts + 1) * product.rows * product.columns * product.together};
  return moved / (device.kernels->streaming * device.memory_bandwidth);
}

double tiles_of(const MatrixProduct& product, const Tile& tile) {
  return std::ceil(product.rows / tile.rows) * std::ceil(product.columns / tile.columns) * product.together;
}

struct Multiprocessors {
  int number;
  FlopsPerSecond rate;  ///< of one
  Seconds fixed;        ///< for each wave of tiles
};

/// Time of the tiles on all multiprocessors if every wave were full. No number of parts makes it less.
Seconds time_in_full_waves(const MatrixProduct& product, const Tile& tile, const Multiprocessors& gpu) {
  const Flops work{2 * tile.rows * tile.columns * product.inner * tiles_of(product, tile)};
  return work / (gpu.number * tile_share(tile) * gpu.rate);
}

Seconds time_in_waves(const MatrixProduct& product, const Tile& tile, double parts,
                      const Multiprocessors& gpu) {
  const double waves = std::ceil(tiles_of(product, tile) * parts / gpu.number);
  const Flops work{2 * tile.rows * tile.columns * std::ceil(product.inner / parts)};
  return waves * (work / (tile_share(tile) * gpu.rate) + gpu.fixed);
}

}  // namespace

Seconds product_time(const MatrixProduct& product, std::int64_t batch, const Device& device, double share,
                     Seconds tile) {
  const MatrixProduct whole = of_batch(product, batch);
  if (device.multiprocessors == 0) return whole.flops() / (share * device.peak);
  const Multiprocessors gpu{device.multiprocessors, share / device.multiprocessors * device.peak, tile};
  Seconds fastest{std::numeric_limits<double>::infinity()};
  for (const Tile& form : kTiles) {
    const Seconds least = (1 - 1e-9) * time_in_full_waves(whole, form, gpu);  // less the rounding
    for (const double parts : kParts) {
      const Seconds sum = sum_of_parts(whole, parts, device);  // grows with the parts
      if (least + sum >= fastest) break;
      fastest = std::min(fastest, time_in_waves(whole, form, parts, gpu) + sum);
    }
  }
  return product.in_turn * fastest;
}

}  // namespace stepcast
