#include "kernels/network/blocked_map.hpp"

#include <algorithm>
#include <stdexcept>

namespace stepcast {
namespace {

using Position = std::vector<std::int64_t>;

/// Calls visit(position) for all positions of a box, the last dimension fastest.
template <class Visit>
void for_each_position(const std::vector<Rows>& box, const Visit& visit) {
  Position at;
  for (const Rows& rows : box) {
    if (rows.size() <= 0) return;
    at.push_back(rows.first);
  }
  while (true) {
    visit(at);
    std::size_t i = box.size();
    while (i > 0 && ++at[i - 1] == box[i - 1].last) {
      at[i - 1] = box[i - 1].first;
      --i;
    }
    if (i == 0) return;
  }
}

bool holds(const MapView& map, const Position& at) {
  for (std::size_t i = 0; i < at.size(); ++i) {
    if (at[i] < map.rows[i].first || at[i] >= map.rows[i].last) return false;
  }
  return true;
}

float* at_position(const MapView& map, std::int64_t sample, const Position& at) {
  float* found = map.data + sample * map.sample_stride;
  for (std::size_t i = 0; i < at.size(); ++i) found += (at[i] - map.rows[i].first) * map.strides[i];
  return found;
}

/// Calls visit(memory of the block's first channel, number of channels in it) for each block of channels.
template <class Visit>
void for_each_block(const MapView& map, float* at, const Visit& visit) {
  for (std::int64_t done = 0; done < map.channels; done += map.block, at += map.block_stride)
    visit(at, std::min(map.block, map.channels - done));
}

}  // namespace

void pack(const std::vector<Rows>& box, const MapView& own, const MapView& extended, float* message) {
  for (std::int64_t sample = 0; sample < own.samples; ++sample) {
    for_each_position(box, [&](const Position& at) {
      const MapView& map = holds(own, at) ? own : extended;
      if (!holds(map, at)) throw std::logic_error("pack: this rank does not hold all rows of the box");
      for_each_block(map, at_position(map, sample, at), [&](const float* from, std::int64_t count) {
        message = std::copy_n(from, count, message);
      });
    });
  }
}

void unpack(const std::vector<Rows>& box, const MapView& extended, const float* message) {
  for (std::int64_t sample = 0; sample < extended.samples; ++sample) {
    for_each_position(box, [&](const Position& at) {
      if (holds(extended, at)) {
        const float* from = message;
        for_each_block(extended, at_position(extended, sample, at), [&](float* to, std::int64_t count) {
          std::copy_n(from, count, to);
          from += count;
        });
      }
      message += extended.channels;
    });
  }
}

}  // namespace stepcast
