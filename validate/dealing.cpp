#include "validate/dealing.hpp"

#include <utility>

#include "kernels/stopwatch.hpp"
#include "models/layer_shapes.hpp"
#include "report/statistics.hpp"
#include "validate/sample_part.hpp"

namespace stepcast {
namespace {

constexpr int kHostRepeats = 15;

}  // namespace

bool deals_samples(const NetworkSharing& sharing, const Model& model) {
  const std::size_t from = sharing.cut.whole_from;
  return device_count(sharing.cut.parts) > 1 && from > 0 && from < model.layers.size();
}

Dealing::Dealing(Network& network, const Model& model, const NetworkSharing& sharing, int place)
    : network_(network),
      backend_(network.backend()),
      cut_(sharing.cut),
      place_(place),
      ways_(device_count(cut_.parts)),
      source_(model.layers[cut_.whole_from].inputs.front()),
      samples_(sharing.micro_batch / ways_),
      map_(map_behind(model, source_, cut_)),
      whole_(static_cast<std::size_t>(samples_ * elements(map_))),
      part_(whole_ / static_cast<std::size_t>(ways_)),
      parts_(backend_.allocate(part_ * static_cast<std::size_t>(ways_))),
      samples_values_(backend_.allocate(whole_)),
      room_(backend_.allocate(whole_)) {}

BoxMove Dealing::scatter(int device) const {
  const std::vector<int> place = grid_place(cut_.parts, device);
  BoxMove box{{samples_, map_.front()}, {}, {}};
  Shape whole{samples_};
  whole.insert(whole.end(), map_.begin(), map_.end());
  box.to_stride = row_major_strides(whole);
  for (std::size_t i = 0; i < cut_.parts.size(); ++i) {
    const Rows rows = part_of(map_[i + 1], cut_.parts[i], place[i]);
    box.size.push_back(rows.size());
    box.to_offset += rows.first * box.to_stride[i + 2];
  }
  box.from_stride = row_major_strides(box.size);
  return box;
}

BoxMove Dealing::gather(int device) const {
  BoxMove box = scatter(device);
  std::swap(box.from_stride, box.to_stride);
  std::swap(box.from_offset, box.to_offset);
  return box;
}

float* Dealing::piece(float* memory, int from, int to) const {
  return memory + static_cast<std::size_t>(from * ways_ + to) * part_;
}

void Dealing::add_to(CollectiveWork& work, bool forward, float* memory) {
  const auto last = static_cast<std::size_t>(ways_) - 2;  // phases of an all-to-all: one less than ranks
  work.before_phase = [this, forward, memory](std::size_t phase) {
    backend_.begin_thread();
    if (phase == 0) forward ? pack_parts(memory) : pack_errors(memory);
  };
  work.after_phase = [this, forward, memory, last](std::size_t phase) {
    if (phase == last) forward ? unpack_samples(memory) : unpack_errors(memory);
  };
}

Seconds Dealing::host_time(bool forward) {
  const auto memory = backend_.allocate(part_ * static_cast<std::size_t>(ways_ * ways_));
  CollectiveWork copies;
  add_to(copies, forward, memory.get());
  std::vector<double> seconds;
  for (int repeat = 0; repeat < kHostRepeats; ++repeat) {
    network_.step();
    const Instant begin = now();
    copies.before_phase(0);
    copies.after_phase(static_cast<std::size_t>(ways_) - 2);
    seconds.push_back(now().wall - begin.wall);
  }
  return {median_of(seconds)};
}

/// Samples of one rank after those of the one before: pieces (place, 0), (place, 1) ... as they lie.
void Dealing::pack_parts(float* memory) {
  backend_.copy_out(network_.kernel(static_cast<std::size_t>(source_)).output(), piece(memory, place_, 0));
}

void Dealing::unpack_samples(float* memory) {
  for (int from = 0; from < ways_; ++from)
    backend_.move(scatter(from), piece(memory, from, place_), samples_values_.get());
  backend_.copy_in(samples_values_.get(), *network_.received(source_));
}

void Dealing::pack_errors(float* memory) {
  backend_.clear(samples_values_.get(), whole_);
  network_.add_error(source_, samples_values_.get(), room_.get());
  for (int to = 0; to < ways_; ++to)
    backend_.move(gather(to), samples_values_.get(), piece(memory, place_, to));
}

void Dealing::unpack_errors(float* memory) {
  const auto each = static_cast<std::int64_t>(part_);
  backend_.move({.size = {ways_, each}, .from_stride = {ways_ * each, 1}, .to_stride = {each, 1}},
                piece(memory, 0, place_), parts_.get());
  backend_.copy_in(parts_.get(), *network_.outside_gradient(static_cast<std::size_t>(source_)));
}

}  // namespace stepcast
