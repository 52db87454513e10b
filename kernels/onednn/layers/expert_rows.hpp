#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace stepcast::onednn {

/// The devices that share the experts of a layer, and the rows between them.
struct ExpertRowsShape {
  int ways = 1, place = 0;    ///< devices, and the place of this one among them
  std::int64_t experts = 1;   ///< of each device
  std::int64_t features = 1;  ///< of a row
  std::int64_t most = 1;      ///< rows at most from one device to another
};

/// Rows on their way between devices: a matrix of blocks, in which block (from, to) holds what device `from`
/// sends to device `to`. A block begins with the number of floats that are sent, its own number included, and
/// the number of rows of each expert; the rows follow, those of the first expert first. What is behind them
/// is not sent.
class ExpertRowBlocks {
 public:
  /// @throws InputError if a block is so large that a float cannot count it
  explicit ExpertRowBlocks(const ExpertRowsShape& shape);

  std::span<float> all() { return blocks_; }
  /// Begins the blocks of this device. @param rows  for each expert of all devices
  void begin_sends(const std::vector<std::int64_t>& rows);
  /// Begins the blocks of this device, as the same blocks of `other` begin, or as those that came from the
  /// other device.
  void copy_counts_of_sends(const ExpertRowBlocks& other);
  void copy_counts_of_receives(const ExpertRowBlocks& other);

  /// Row `row` of a block to, or from, another device.
  float* sent(int to, std::int64_t row) { return row_of(block(shape_.place, to), row); }
  const float* received(int from, std::int64_t row) const {
    return blocks_.data() + header() + row * shape_.features + block(from, shape_.place);
  }
  /// Rows that came from a device for an own expert.
  std::int64_t rows_from(int from, std::int64_t expert) const;

 private:
  std::int64_t header() const { return 1 + shape_.experts; }
  std::int64_t block_size() const { return header() + shape_.most * shape_.features; }
  std::int64_t block(int from, int to) const { return (from * shape_.ways + to) * block_size(); }
  float* row_of(std::int64_t block, std::int64_t row) {
    return blocks_.data() + block + header() + row * shape_.features;
  }

  ExpertRowsShape shape_;
  std::vector<float> blocks_;
};

/// The rows of the own experts from all devices, in one array: those of the first expert first, and of each
/// expert those of the first device first.
class RowsByExpert {
 public:
  explicit RowsByExpert(const ExpertRowsShape& shape) : shape_(shape), first_(shape.experts + 1, 0) {}

  /// Takes over the numbers of rows that came.
  void count(const ExpertRowBlocks& received);
  std::int64_t first(std::int64_t expert) const { return first_[expert]; }
  std::int64_t of(std::int64_t expert) const { return first_[expert + 1] - first_[expert]; }
  std::int64_t total() const { return first_.back(); }

  /// Copies the rows that came. `count` has counted rows of the same numbers.
  void gather(const ExpertRowBlocks& received, std::vector<float>& rows) const;
  /// Copies rows into the blocks back to the devices that sent the rows of `received`.
  void scatter(const std::vector<float>& rows, const ExpertRowBlocks& received, ExpertRowBlocks& back) const;

 private:
  ExpertRowsShape shape_;
  std::vector<std::int64_t> first_;
};

}  // namespace stepcast::onednn
