#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "core/error.hpp"
#include "data/binary_file.hpp"
#include "data/files.hpp"

namespace stepcast {
namespace {

/// Files of equal records one after the other.
class Records : public Dataset {
 public:
  Records(const std::vector<std::string>& names, std::size_t bytes)
      : bytes_(static_cast<std::int64_t>(bytes)) {
    for (const std::string& name : names) {
      BinaryFile file(name);
      if (file.size() == 0 || file.size() % bytes_ != 0)
        throw InputError(
            fmt::format("{}: expected samples of {} bytes each, got {} bytes", name, bytes_, file.size()));
      ends_.push_back(samples() + file.size() / bytes_);
      files_.push_back(std::move(file));
    }
  }

  std::int64_t samples() const override { return ends_.empty() ? 0 : ends_.back(); }

 protected:
  std::vector<unsigned char> record(std::int64_t sample) const {
    const auto at = std::upper_bound(ends_.begin(), ends_.end(), sample);
    if (sample < 0 || at == ends_.end()) throw InputError(fmt::format("there is no sample {}", sample));
    const auto file = static_cast<std::size_t>(at - ends_.begin());
    std::vector<unsigned char> bytes(static_cast<std::size_t>(bytes_));
    files_[file].read((sample - (file == 0 ? 0 : ends_[file - 1])) * bytes_, bytes);
    return bytes;
  }
  [[noreturn]] void no_class(std::int64_t sample, double label, std::int64_t classes) const {
    throw InputError(fmt::format("{}: label of sample {} is {}, the network has {} classes", file_of(sample),
                                 sample, label, classes));
  }
  const std::string& file_of(std::int64_t sample) const {
    return files_[static_cast<std::size_t>(std::upper_bound(ends_.begin(), ends_.end(), sample) -
                                           ends_.begin())]
        .name();
  }

 private:
  std::int64_t bytes_;
  std::vector<BinaryFile> files_;
  std::vector<std::int64_t> ends_;  ///< samples up to the end of each file
};

class Cifar10 : public Records {
 public:
  Cifar10(const std::vector<std::string>& files, const SampleForm& form)
      : Records(files, 1 + sample_numbers(form.input)), classes_(form.classes) {}

  void read(std::int64_t sample, std::span<float> input, std::span<float> targets) const override {
    const std::vector<unsigned char> bytes = record(sample);
    if (bytes[0] >= classes_) no_class(sample, bytes[0], classes_);
    targets[0] = bytes[0];
    for (std::size_t i = 0; i < input.size(); ++i) input[i] = static_cast<float>(bytes[i + 1]) / 255;
  }

 private:
  std::int64_t classes_;
};

class RawFloats : public Records {
 public:
  RawFloats(const std::vector<std::string>& files, const SampleForm& form)
      : Records(files, sizeof(float) * (sample_numbers(form.input) + sample_numbers(form.targets))),
        classes_(form.classes) {
    static_assert(std::endian::native == std::endian::little);
  }

  void read(std::int64_t sample, std::span<float> input, std::span<float> targets) const override {
    const std::vector<unsigned char> bytes = record(sample);
    std::memcpy(input.data(), bytes.data(), input.size_bytes());
    std::memcpy(targets.data(), bytes.data() + input.size_bytes(), targets.size_bytes());
    check_finite(sample, input);
    check_finite(sample, targets);
    if (classes_ == 0) return;
    for (const float label : targets) {
      const bool is_class = label >= 0 && label < static_cast<float>(classes_) && label == std::floor(label);
      if (!is_class) no_class(sample, static_cast<double>(label), classes_);
    }
  }

 private:
  void check_finite(std::int64_t sample, std::span<const float> numbers) const {
    if (std::all_of(numbers.begin(), numbers.end(), [](float number) { return std::isfinite(number); }))
      return;
    throw InputError(fmt::format("{}: sample {} has a number that is not finite", file_of(sample), sample));
  }

  std::int64_t classes_;
};

}  // namespace

std::unique_ptr<Dataset> cifar10_files(const std::vector<std::string>& files, const SampleForm& form) {
  if (form.input != std::vector<std::int64_t>{3, 32, 32})
    throw InputError("data: cifar10 needs a network with an input of [3, 32, 32]");
  return std::make_unique<Cifar10>(files, form);
}

std::unique_ptr<Dataset> raw_files(const std::vector<std::string>& files, const SampleForm& form) {
  return std::make_unique<RawFloats>(files, form);
}

}  // namespace stepcast
