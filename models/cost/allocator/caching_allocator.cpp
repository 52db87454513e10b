#include "models/cost/allocator/caching_allocator.hpp"

#include <cmath>

namespace stepcast {
namespace {

// Names as in the source: kMinBlockSize, kSmallSize, kSmallBuffer, kMinLargeAlloc, kLargeBuffer, kRoundLarge.
constexpr double kMinBlock = 512;
constexpr double kSmall = 0x1p20, kSmallSegment = 2 * 0x1p20;
constexpr double kMinLarge = 10 * 0x1p20, kLargeSegment = 20 * 0x1p20;
constexpr double kRoundLarge = 2 * 0x1p20;

double round_up(double bytes, double step) {
  return std::ceil(bytes / step) * step;
}

double segment_size(double block) {
  if (block <= kSmall) return kSmallSegment;
  return block < kMinLarge ? kLargeSegment : round_up(block, kRoundLarge);
}

bool may_split(double remaining, bool small) {
  return small ? remaining >= kMinBlock : remaining > kSmall;
}

}  // namespace

Bytes allocated_block(Bytes tensor) {
  return {round_up(tensor.value, kMinBlock)};
}

std::set<CachingAllocator::FreePiece>& CachingAllocator::free_pieces(const Piece& piece) {
  return segments_[piece.segment].small ? small_ : large_;
}

CachingAllocator::FreePiece CachingAllocator::key(Block block) const {
  const Piece& piece = pieces_[block];
  return {piece.size, piece.segment, piece.start, block};
}

CachingAllocator::Block CachingAllocator::add_piece(const Piece& piece) {
  if (unused_.empty()) {
    pieces_.push_back(piece);
    return pieces_.size() - 1;
  }
  const Block block = unused_.back();
  unused_.pop_back();
  pieces_[block] = piece;
  return block;
}

CachingAllocator::Block CachingAllocator::add_segment(double size) {
  Segment segment;
  segment.size = segment_size(size);
  segment.small = size <= kSmall;
  reserved_ += segment.size;
  Piece piece;
  piece.segment = segments_.size();
  piece.size = segment.size;
  segments_.push_back(segment);
  return add_piece(piece);
}

/// Cuts a block that is not in the set of free ones to `size`, and frees the rest of it.
void CachingAllocator::split(Block block, double size) {
  Piece rest = pieces_[block];
  const Block after = rest.after;
  rest.start += size;
  rest.size -= size;
  rest.before = block;
  rest.is_free = true;
  const Block added = add_piece(rest);
  pieces_[block].size = size;
  pieces_[block].after = added;
  if (after != kNoBlock) pieces_[after].before = added;
  free_pieces(rest).insert(key(added));
}

CachingAllocator::Block CachingAllocator::allocate(Bytes tensor) {
  if (!(tensor.value > 0)) return kNoBlock;
  const double size = allocated_block(tensor).value;
  std::set<FreePiece>& all = size <= kSmall ? small_ : large_;
  const auto found = all.lower_bound({size, -1, 0, kNoBlock});
  Block block = kNoBlock;
  if (found == all.end()) {
    block = add_segment(size);
  } else {
    block = std::get<3>(*found);
    all.erase(found);
  }
  const Piece& piece = pieces_[block];
  Segment& segment = segments_[piece.segment];
  if (may_split(piece.size - size, segment.small)) split(block, size);
  Piece& taken = pieces_[block];  // `split` may have moved it
  taken.is_free = false;
  allocated_ += taken.size;
  if (segment.tensors++ == 0) in_use_ += segment.size;
  return block;
}

/// Adds the free block `after` to the one before it.
void CachingAllocator::join(Block block, Block after) {
  Piece& piece = pieces_[block];
  const Piece& joined = pieces_[after];
  piece.size += joined.size;
  piece.after = joined.after;
  if (piece.after != kNoBlock) pieces_[piece.after].before = block;
  unused_.push_back(after);
}

void CachingAllocator::free(Block block) {
  if (block == kNoBlock) return;
  const auto is_free = [&](Block one) { return one != kNoBlock && pieces_[one].is_free; };
  Piece& piece = pieces_[block];
  Segment& segment = segments_[piece.segment];
  std::set<FreePiece>& all = free_pieces(piece);
  allocated_ -= piece.size;
  if (--segment.tensors == 0) in_use_ -= segment.size;
  const Block before = piece.before, after = piece.after;
  if (is_free(after)) {
    all.erase(key(after));
    join(block, after);
  }
  Block result = block;
  if (is_free(before)) {
    all.erase(key(before));
    join(before, block);
    result = before;
  }
  pieces_[result].is_free = true;
  all.insert(key(result));
}

}  // namespace stepcast
