#include "validate/dealing.hpp"

#include <algorithm>

#include "kernels/processor.hpp"
#include "kernels/stopwatch.hpp"
#include "models/layer_shapes.hpp"
#include "report/statistics.hpp"

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
      cut_(sharing.cut),
      place_(place),
      ways_(device_count(cut_.parts)),
      source_(model.layers[cut_.whole_from].inputs.front()),
      samples_(sharing.micro_batch / ways_),
      map_(map_behind(model, source_, cut_)),
      whole_(static_cast<std::size_t>(samples_ * elements(map_))),
      part_(whole_ / static_cast<std::size_t>(ways_)),
      parts_(part_ * static_cast<std::size_t>(ways_)),
      samples_values_(whole_) {
  for (int device = 0; device < ways_; ++device) runs_.push_back(runs_of_part(map_, cut_, device));
}

void Dealing::scatter(int device, const float* part, float* whole) const {
  const std::int64_t own = elements(map_) / ways_, all = elements(map_);
  for (std::int64_t i = 0; i < samples_; ++i) {
    for (const SampleRun& run : runs_[static_cast<std::size_t>(device)])
      std::copy_n(part + i * own + run.in_part, run.length, whole + i * all + run.in_whole);
  }
}

void Dealing::gather(int device, const float* whole, float* part) const {
  const std::int64_t own = elements(map_) / ways_, all = elements(map_);
  for (std::int64_t i = 0; i < samples_; ++i) {
    for (const SampleRun& run : runs_[static_cast<std::size_t>(device)])
      std::copy_n(whole + i * all + run.in_whole, run.length, part + i * own + run.in_part);
  }
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

Seconds Dealing::host_time(bool forward) {
  std::vector<float> memory(part_ * static_cast<std::size_t>(ways_ * ways_));
  const CollectiveWork copies = work(forward, memory);
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
