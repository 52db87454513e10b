#pragma once

#include <set>
#include <tuple>
#include <vector>

#include "core/typed_numbers.hpp"

namespace stepcast {

/// The memory that PyTorch's caching allocator takes for one tensor: a multiple of 512 B.
Bytes allocated_block(Bytes tensor);

/// PyTorch's caching allocator of one device. It asks the device for segments and keeps them. A tensor takes
/// the smallest free block that holds it; what remains of that block is a free block of its own if it is not
/// too small; neighbours that are free become one block. A block never reaches over two segments, so
/// segments whose tensors were freed may be too small for later tensors.
/// Source: c10/cuda/CUDACachingAllocator.cpp of pytorch/pytorch, with the default settings.
class CachingAllocator {
 public:
  using Block = int;
  static constexpr Block kNoBlock = -1;  ///< of a tensor without bytes

  Block allocate(Bytes tensor);
  void free(Block block);

  Bytes allocated() const { return {allocated_}; }  ///< blocks of tensors (memory_allocated)
  Bytes reserved() const { return {reserved_}; }    ///< all segments (memory_reserved)
  /// Segments that hold a tensor. The others go back to the device before the allocator reports that memory
  /// is short.
  Bytes in_use() const { return {in_use_}; }

 private:
  /// A part of a segment: a tensor's block, or a free one.
  struct Piece {
    int segment = 0;
    double start = 0, size = 0;  ///< within the segment [B]
    Block before = kNoBlock, after = kNoBlock;
    bool is_free = false;
  };
  struct Segment {
    double size = 0;
    int tensors = 0;
    bool small = false;  ///< for tensors of at most 1 MiB
  };
  using FreePiece = std::tuple<double, int, double, Block>;  ///< size, segment, start; the smallest is first

  Block add_piece(const Piece& piece);
  Block add_segment(double size);
  void split(Block block, double size);
  void join(Block block, Block after);
  std::set<FreePiece>& free_pieces(const Piece& piece);
  FreePiece key(Block block) const;

  std::vector<Piece> pieces_;
  std::vector<Block> unused_;  ///< places in `pieces_`
  std::vector<Segment> segments_;
  std::set<FreePiece> small_, large_;
  double allocated_ = 0, reserved_ = 0, in_use_ = 0;
};

}  // namespace stepcast
