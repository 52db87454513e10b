#include "validate/dealing.hpp"

#include <algorithm>

#include "kernels/processor.hpp"
#include "models/layer_shapes.hpp"

namespace stepcast {
namespace {

/// The map that is dealt out: a flattened one in the order that it had.
Shape map_behind(const Model& model, int source, std::size_t dimensions) {
  while (model.layers[static_cast<std::size_t>(source)].output.size() != dimensions + 1)
    source = model.layers[static_cast<std::size_t>(source)].inputs.front();
  return model.layers[static_cast<std::size_t>(source)].output;
}

}  // namespace

Dealing::Dealing(Network& network, const Model& model, const NetworkSharing& sharing, int place)
    : network_(network),
      cut_(sharing.cut),
      place_(place),
      ways_(device_count(cut_.parts)),
      source_(model.layers[cut_.whole_from].inputs.front()),
      samples_(sharing.micro_batch / ways_),
      map_(map_behind(model, source_, cut_.parts.size())),
      whole_(static_cast<std::size_t>(samples_ * elements(map_))),
      part_(whole_ / static_cast<std::size_t>(ways_)),
      parts_(part_ * static_cast<std::size_t>(ways_)),
      samples_values_(whole_) {}

/// Calls visit(offset in the part, offset in the whole, length) for rows that are contiguous in both.
template <class Visit>
void Dealing::for_each_run(int device, const Visit& visit) const {
  const std::vector<int> place = grid_place(cut_.parts, device);
  std::vector<Rows> box{{0, samples_}, {0, map_.front()}};
  Shape extent{samples_, map_.front()};
  for (std::size_t i = 0; i < cut_.parts.size(); ++i) {
    box.push_back(part_of(map_[i + 1], cut_.parts[i], place[i]));
    extent.push_back(map_[i + 1]);
  }
  std::vector<std::int64_t> at;
  for (const Rows& rows : box) at.push_back(rows.first);
  const std::size_t last = box.size() - 1;
  std::int64_t in_part = 0;
  while (true) {
    std::int64_t in_whole = 0;
    for (std::size_t i = 0; i <= last; ++i) in_whole = in_whole * extent[i] + at[i];
    visit(in_part, in_whole, box[last].size());
    in_part += box[last].size();
    std::size_t i = last;
    while (i > 0 && ++at[i - 1] == box[i - 1].last) {
      at[i - 1] = box[i - 1].first;
      --i;
    }
    if (i == 0) return;
  }
}

void Dealing::scatter(int device, const float* part, float* whole) const {
  for_each_run(device, [&](std::int64_t in_part, std::int64_t in_whole, std::int64_t length) {
    std::copy_n(part + in_part, length, whole + in_whole);
  });
}

void Dealing::gather(int device, const float* whole, float* part) const {
  for_each_run(device, [&](std::int64_t in_part, std::int64_t in_whole, std::int64_t length) {
    std::copy_n(whole + in_whole, length, part + in_part);
  });
}

float* Dealing::piece(std::span<float> memory, int from, int to) const {
  return memory.data() + static_cast<std::size_t>(from * ways_ + to) * part_;
}

CollectiveWork Dealing::work(bool forward, std::span<float> memory) {
  const auto last = static_cast<std::size_t>(ways_) - 2;  // phases of an all-to-all: one less than ranks
  return {.memory = memory,
          .before_phase =
              [this, forward, memory](std::size_t phase) {
                set_kernel_threads(1);
                if (phase == 0) forward ? pack_parts(memory) : pack_errors(memory);
              },
          .after_phase =
              [this, forward, memory, last](std::size_t phase) {
                if (phase == last) forward ? unpack_samples(memory) : unpack_errors(memory);
              }};
}

void Dealing::pack_parts(std::span<float> memory) {
  network_.kernel(static_cast<std::size_t>(source_)).output().copy_to(parts_.data());
  for (int to = 0; to < ways_; ++to)
    std::copy_n(parts_.data() + static_cast<std::size_t>(to) * part_, part_, piece(memory, place_, to));
}

void Dealing::unpack_samples(std::span<float> memory) {
  for (int from = 0; from < ways_; ++from) scatter(from, piece(memory, from, place_), samples_values_.data());
  network_.received(source_)->copy_from(samples_values_.data());
}

void Dealing::pack_errors(std::span<float> memory) {
  std::fill(samples_values_.begin(), samples_values_.end(), 0.0f);
  network_.add_error(source_, samples_values_.data());
  for (int to = 0; to < ways_; ++to) gather(to, samples_values_.data(), piece(memory, place_, to));
}

void Dealing::unpack_errors(std::span<float> memory) {
  for (int from = 0; from < ways_; ++from)
    std::copy_n(piece(memory, from, place_), part_, parts_.data() + static_cast<std::size_t>(from) * part_);
  network_.outside_gradient(static_cast<std::size_t>(source_))->copy_from(parts_.data());
}

}  // namespace stepcast
