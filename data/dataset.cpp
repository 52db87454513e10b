#include "data/dataset.hpp"

#include <array>
#include <cmath>
#include <numbers>

#include "core/error.hpp"

namespace stepcast {

std::size_t sample_numbers(const std::vector<std::int64_t>& shape) {
  std::size_t product = 1;
  for (const std::int64_t size : shape) product *= size;
  return product;
}

const Words<DataOptions::Kind>& data_kind_words() {
  using Kind = DataOptions::Kind;
  static const Words<Kind> words{
      {"images", Kind::images},   {"mesh", Kind::mesh}, {"sequences", Kind::sequences},
      {"showers", Kind::showers}, {"idx", Kind::idx},   {"cifar10", Kind::cifar10},
      {"raw", Kind::raw}};
  return words;
}

bool is_generated(DataOptions::Kind kind) {
  return kind <= DataOptions::Kind::showers;
}

Batches::Batches(const Dataset& data, const SampleForm& form, const Split& split)
    : data_(data), input_(sample_numbers(form.input)), targets_(sample_numbers(form.targets)), split_(split) {
  if (data.samples() < 1) throw InputError("data: expected at least one sample, got none");
}

const Batches::Batch& Batches::batch(std::int64_t number) {
  const std::int64_t first = (number * split_.workers + split_.worker) * split_.batch % data_.samples();
  const auto [known, is_new] = known_.try_emplace(first);
  if (!is_new) return known->second;
  Batch& batch = known->second;
  const std::size_t count = split_.batch;
  batch.inputs.resize(count * input_);
  batch.targets.resize(count * targets_);
  for (std::size_t i = 0; i < count; ++i) {
    data_.read((first + static_cast<std::int64_t>(i)) % data_.samples(),
               std::span(batch.inputs).subspan(i * input_, input_),
               std::span(batch.targets).subspan(i * targets_, targets_));
  }
  return batch;
}

void Batches::prepare(std::int64_t count, const std::function<void()>& after_each) {
  for (std::int64_t number = 0; number < count; ++number) {
    batch(number);
    after_each();
  }
}

const Batches::Batch& Batches::next() {
  return batch(next_++);
}

namespace {

constexpr int kBlobs = 6;  // Gaussian bumps in each channel of a pattern
constexpr std::uint32_t kNumbersOfBlob = 4;
constexpr std::int64_t kMostShift = 2;  // [pixels]

/// A task whose samples are drawn. Sample i of the data set is sample `first` + i of the task.
class GeneratedTask : public Dataset {
 public:
  GeneratedTask(const DataOptions& options, const SampleForm& form, std::int64_t first, std::int64_t count)
      : options_(options), form_(form), first_(first), count_(count) {}

  std::int64_t samples() const override { return count_; }

 protected:
  DataOptions options_;
  SampleForm form_;
  std::int64_t first_, count_;
};

class Images : public GeneratedTask {
 public:
  Images(const DataOptions& options, const SampleForm& form, std::int64_t first, std::int64_t count)
      : GeneratedTask(options, form, first, count) {
    for (std::int64_t k = 0; k < form.classes; ++k) add_pattern(k);
  }

  void read(std::int64_t sample, std::span<float> input, std::span<float> targets) const override {
    const Draws draws(options_.seed, first_ + sample, kSample), noise(options_.seed, first_ + sample, kNoise);
    const std::int64_t label = draws.below(0, form_.classes);
    const double strength = draws.uniform(1, 0.7, 1.3);
    const std::int64_t down = draws.below(2, 2 * kMostShift + 1) - kMostShift;
    const std::int64_t right = draws.below(3, 2 * kMostShift + 1) - kMostShift;
    const std::vector<float>& pattern = patterns_[label];
    for (std::size_t i = 0; i < input.size(); ++i) {
      const std::int64_t at = i;
      const std::int64_t channel = at / (height() * width());
      const std::int64_t y = at / width() % height() - down, x = at % width() - right;
      const bool inside = y >= 0 && y < height() && x >= 0 && x < width();
      const double seen = inside ? pattern[(channel * height() + y) * width() + x] : 0;
      input[i] = strength * seen + options_.noise * noise.normal(i);
    }
    targets[0] = label;
  }

 private:
  std::int64_t height() const { return form_.input[1]; }
  std::int64_t width() const { return form_.input[2]; }

  /// Appends the pattern of a class: in each channel a sum of positive and negative Gaussian bumps, scaled to
  /// a mean square of 1.
  void add_pattern(std::int64_t label) {
    const Draws draws(options_.seed, label, kPatterns);
    std::vector<float> pattern(sample_numbers(form_.input));
    for (std::int64_t channel = 0; channel < form_.input[0]; ++channel) {
      for (int blob = 0; blob < kBlobs; ++blob) {
        const std::uint32_t n = kNumbersOfBlob * (channel * kBlobs + blob);
        const double y0 = draws.uniform(n) * height();
        const double x0 = draws.uniform(n + 1) * width();
        const double size = draws.uniform(n + 2, 0.06, 0.15) * std::min(height(), width());
        const double sign = draws.uniform(n + 3) < 0.5 ? -1 : 1;
        for (std::int64_t y = 0; y < height(); ++y) {
          for (std::int64_t x = 0; x < width(); ++x) {
            const double exponent = (std::pow(y - y0, 2) + std::pow(x - x0, 2)) / (2 * size * size);
            pattern[(channel * height() + y) * width() + x] += static_cast<float>(sign * std::exp(-exponent));
          }
        }
      }
    }
    double square = 0;
    for (const float one : pattern) square += double{one} * one;
    const float scale = std::sqrt(pattern.size() / square);
    for (float& one : pattern) one *= scale;
    patterns_.push_back(std::move(pattern));
  }

  std::vector<std::vector<float>> patterns_;  ///< one pattern for each class
};

}  // namespace

std::unique_ptr<Dataset> generated_images(const DataOptions& options, const SampleForm& form,
                                          std::int64_t first, std::int64_t count) {
  return std::make_unique<Images>(options, form, first, count);
}

namespace {

constexpr std::uint32_t kDiscs = 4;

struct Disc {
  double y = 0, x = 0, radius = 0;  ///< relative to the height and width of the field

  bool covers(double at_y, double at_x) const { return std::hypot(at_y - y, at_x - x) < radius; }
};

class Mesh : public GeneratedTask {
 public:
  using GeneratedTask::GeneratedTask;

  void read(std::int64_t sample, std::span<float> input, std::span<float> targets) const override {
    const Draws draws(options_.seed, first_ + sample, kSample), noise(options_.seed, first_ + sample, kNoise);
    std::array<Disc, kDiscs> discs;
    for (std::uint32_t i = 0; i < kDiscs; ++i)
      discs[i] = {draws.uniform(3 * i), draws.uniform(3 * i + 1), draws.uniform(3 * i + 2, 0.1, 0.25)};
    const auto covered = [&](std::int64_t y, std::int64_t height, std::int64_t x, std::int64_t width) {
      const double at_y = (y + 0.5) / height;
      const double at_x = (x + 0.5) / width;
      for (const Disc& disc : discs) {
        if (disc.covers(at_y, at_x)) return true;
      }
      return false;
    };
    const std::int64_t height = form_.input[1], width = form_.input[2];
    for (std::size_t i = 0; i < input.size(); ++i) {
      const std::int64_t at = i;
      const double sign = at / (height * width) % 2 == 0 ? 1 : -1;  // channels alternate in sign
      const double signal = covered(at / width % height, height, at % width, width) ? 1 : -1;
      input[i] = sign * signal + options_.noise * noise.normal(i);
    }
    const std::int64_t rows = form_.targets[form_.targets.size() - 2], columns = form_.targets.back();
    for (std::size_t i = 0; i < targets.size(); ++i) {
      const std::int64_t at = i;
      targets[i] = covered(at / columns % rows, rows, at % columns, columns) ? 1 : 0;
    }
  }
};

}  // namespace

std::unique_ptr<Dataset> generated_mesh(const DataOptions& options, const SampleForm& form,
                                        std::int64_t first, std::int64_t count) {
  return std::make_unique<Mesh>(options, form, first, count);
}

namespace {

class Sequences : public GeneratedTask {
 public:
  using GeneratedTask::GeneratedTask;

  void read(std::int64_t sample, std::span<float> input, std::span<float> targets) const override {
    const Draws draws(options_.seed, first_ + sample, kSample), noise(options_.seed, first_ + sample, kNoise);
    const std::int64_t label = draws.below(0, form_.classes);
    const double phase = draws.uniform(1);
    const double time = form_.input[0], features = form_.input[1];
    for (std::size_t i = 0; i < input.size(); ++i) {
      const double t = std::floor(i / features) / time;
      const double feature = std::fmod(i, features) / features;
      const double turns = (label + 1) * t + phase + feature;
      input[i] = std::sin(2 * std::numbers::pi * turns) + options_.noise * noise.normal(i);
    }
    targets[0] = label;
  }
};

}  // namespace

std::unique_ptr<Dataset> generated_sequences(const DataOptions& options, const SampleForm& form,
                                             std::int64_t first, std::int64_t count) {
  return std::make_unique<Sequences>(options, form, first, count);
}

namespace {

constexpr double kDepth = 10;  // depth of the calorimeter, in the units of t in the profile t^a exp(-b t)

class Showers : public GeneratedTask {
 public:
  using GeneratedTask::GeneratedTask;

  void read(std::int64_t sample, std::span<float> input, std::span<float> targets) const override {
    const Draws draws(options_.seed, first_ + sample, kSample), noise(options_.seed, first_ + sample, kNoise);
    const bool real = targets.empty() || draws.below(0, 2) == 1;
    const double energy = draws.uniform(1, 0.5, 2);
    const double a = draws.uniform(2, 1.5, 3.5), b = draws.uniform(3, 0.4, 0.6);
    const double y0 = draws.uniform(4, 0.4, 0.6), x0 = draws.uniform(5, 0.4, 0.6);
    const std::int64_t depth = form_.input[1], height = form_.input[2], width = form_.input[3];
    double sum = 0;
    for (std::size_t i = 0; i < input.size(); ++i) {
      const std::int64_t at = i;
      const double t = kDepth * center(at / (height * width) % depth, depth);
      const double y = center(at / width % height, height) - y0, x = center(at % width, width) - x0;
      const double width_at_depth = 0.03 + 0.01 * t;  // a shower spreads as it goes in
      const double profile = std::pow(t, a) * std::exp(-b * t) * std::exp(-std::hypot(y, x) / width_at_depth);
      const double flat = noise.uniform(i) < 0.05 ? 1 : 0;  // noise hits one cell in twenty, anywhere
      // Fluctuations grow as the square root of the energy, so that they are relatively larger in cells of
      // low energy.
      const double mean = real ? profile : flat;
      const double cell = std::max(0.0, mean + options_.noise * std::sqrt(mean) * noise.normal(i));
      input[i] = cell;
      sum += cell;
    }
    const double scale = sum > 0 ? energy * 0.05 * input.size() / sum : 0;
    for (float& cell : input) cell = scale * cell;
    if (!targets.empty()) targets[0] = real ? 1 : 0;
  }

 private:
  static double center(std::int64_t cell, std::int64_t cells) { return (cell + 0.5) / cells; }
};

}  // namespace

std::unique_ptr<Dataset> generated_showers(const DataOptions& options, const SampleForm& form,
                                           std::int64_t first, std::int64_t count) {
  return std::make_unique<Showers>(options, form, first, count);
}

}  // namespace stepcast
