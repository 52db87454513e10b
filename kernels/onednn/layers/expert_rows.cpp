#include "kernels/onednn/layers/expert_rows.hpp"

#include <algorithm>

#include "core/error.hpp"

namespace stepcast::onednn {

ExpertRowBlocks::ExpertRowBlocks(const ExpertRowsShape& shape) : shape_(shape) {
  constexpr std::int64_t kCountable = std::int64_t{1} << 24;  // integers up to it are floats
  if (shape.ways > 1 && block_size() > kCountable)
    throw InputError("rows of experts between two devices: expected at most 16777216 numbers in a message");
  blocks_.resize(block_size() * shape.ways * shape.ways);
}

void ExpertRowBlocks::begin_sends(const std::vector<std::int64_t>& rows) {
  for (int to = 0; to < shape_.ways; ++to) {
    float* const begin = blocks_.data() + block(shape_.place, to);
    std::int64_t sum = 0;
    for (std::int64_t expert = 0; expert < shape_.experts; ++expert) {
      const std::int64_t own = rows[to * shape_.experts + expert];
      begin[1 + expert] = own;
      sum += own;
    }
    begin[0] = header() + sum * shape_.features;
  }
}

void ExpertRowBlocks::copy_counts_of_sends(const ExpertRowBlocks& other) {
  for (int to = 0; to < shape_.ways; ++to)
    std::copy_n(other.blocks_.data() + block(shape_.place, to), header(),
                blocks_.data() + block(shape_.place, to));
}

void ExpertRowBlocks::copy_counts_of_receives(const ExpertRowBlocks& other) {
  for (int from = 0; from < shape_.ways; ++from)
    std::copy_n(other.blocks_.data() + block(from, shape_.place), header(),
                blocks_.data() + block(shape_.place, from));
}

std::int64_t ExpertRowBlocks::rows_from(int from, std::int64_t expert) const {
  return static_cast<std::int64_t>(blocks_[block(from, shape_.place) + 1 + expert]);
}

void RowsByExpert::count(const ExpertRowBlocks& received) {
  for (std::int64_t expert = 0; expert < shape_.experts; ++expert) {
    first_[expert + 1] = first_[expert];
    for (int from = 0; from < shape_.ways; ++from) first_[expert + 1] += received.rows_from(from, expert);
  }
}

void RowsByExpert::gather(const ExpertRowBlocks& received, std::vector<float>& rows) const {
  rows.resize(total() * shape_.features);
  for (int from = 0; from < shape_.ways; ++from) {
    std::int64_t row = 0;
    for (std::int64_t expert = 0; expert < shape_.experts; ++expert) {
      std::int64_t to = first_[expert];
      for (int before = 0; before < from; ++before) to += received.rows_from(before, expert);
      const std::int64_t own = received.rows_from(from, expert);
      std::copy_n(received.received(from, row), own * shape_.features, rows.begin() + to * shape_.features);
      row += own;
    }
  }
}

void RowsByExpert::scatter(const std::vector<float>& rows, const ExpertRowBlocks& received,
                           ExpertRowBlocks& back) const {
  back.copy_counts_of_receives(received);
  for (int to = 0; to < shape_.ways; ++to) {
    std::int64_t row = 0;
    for (std::int64_t expert = 0; expert < shape_.experts; ++expert) {
      std::int64_t from = first_[expert];
      for (int before = 0; before < to; ++before) from += received.rows_from(before, expert);
      const std::int64_t own = received.rows_from(to, expert);
      std::copy_n(rows.begin() + from * shape_.features, own * shape_.features, back.sent(to, row));
      row += own;
    }
  }
}

}  // namespace stepcast::onednn
