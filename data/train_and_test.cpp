#include "data/train_and_test.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <utility>

#include "core/error.hpp"
#include "data/dataset.hpp"

namespace stepcast {
namespace {

/// A file with random access. Several threads may read at once.
class BinaryFile {
 public:
  /// @throws InputError if it cannot be opened
  explicit BinaryFile(const std::string& name);
  BinaryFile(BinaryFile&& other) noexcept;
  BinaryFile& operator=(BinaryFile&&) = delete;
  ~BinaryFile();

  const std::string& name() const { return name_; }
  std::int64_t size() const { return size_; }
  /// Fills the span with the bytes from `begin` on. @throws InputError if the file ends before
  void read(std::int64_t begin, std::span<unsigned char> bytes) const;
  /// The big-endian integer at `begin`.
  std::uint32_t big_endian(std::int64_t begin) const;

 private:
  std::string name_;
  int descriptor_ = -1;
  std::int64_t size_ = 0;
};

BinaryFile::BinaryFile(const std::string& name)
    : name_(name), descriptor_(::open(name.c_str(), O_RDONLY | O_CLOEXEC)) {
  struct stat about {};
  if (descriptor_ >= 0 && fstat(descriptor_, &about) == 0 && S_ISREG(about.st_mode)) {
    size_ = about.st_size;
    return;
  }
  const std::string why = descriptor_ < 0 ? std::strerror(errno) : "not a regular file";
  if (descriptor_ >= 0) ::close(descriptor_);
  throw InputError(fmt::format("{}: {}", name, why));
}

BinaryFile::BinaryFile(BinaryFile&& other) noexcept
    : name_(std::move(other.name_)), descriptor_(std::exchange(other.descriptor_, -1)), size_(other.size_) {}

BinaryFile::~BinaryFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void BinaryFile::read(std::int64_t begin, std::span<unsigned char> bytes) const {
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t got = ::pread(descriptor_, bytes.data() + done, bytes.size() - done, begin + done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw InputError(fmt::format("{}: {}", name_, std::strerror(errno)));
    if (got == 0)
      throw InputError(fmt::format("{}: ends at byte {}, expected {} more", name_,
                                   begin + static_cast<std::int64_t>(done), bytes.size() - done));
    done += got;
  }
}

std::uint32_t BinaryFile::big_endian(std::int64_t begin) const {
  std::array<unsigned char, 4> bytes{};
  read(begin, bytes);
  std::uint32_t value = 0;
  for (const unsigned char byte : bytes) value = value << 8 | byte;
  return value;
}

constexpr std::uint32_t kImages = 0x00000803;  // unsigned bytes, three dimensions
constexpr std::uint32_t kLabels = 0x00000801;  // unsigned bytes, one dimension
constexpr std::int64_t kImagesHeader = 16, kLabelsHeader = 8;

void check_magic(const BinaryFile& file, std::uint32_t expected) {
  const std::uint32_t found = file.big_endian(0);
  if (found == expected) return;
  const char* hint = found >> 16 == 0x1f8b ? " (compressed; run gunzip on it)" : "";
  throw InputError(fmt::format("{}: expected an IDX file that begins with {:#010x}, got {:#010x}{}",
                               file.name(), expected, found, hint));
}

void check_size(const BinaryFile& file, std::int64_t expected) {
  if (file.size() != expected)
    throw InputError(
        fmt::format("{}: expected {} bytes by its header, got {}", file.name(), expected, file.size()));
}

class IdxFiles : public Dataset {
 public:
  IdxFiles(const std::string& images, const std::string& labels, const SampleForm& form)
      : images_(images), labels_(labels), pixels_(sample_numbers(form.input)) {
    check_magic(images_, kImages);
    check_magic(labels_, kLabels);
    const std::int64_t height = images_.big_endian(8), width = images_.big_endian(12);
    if (height > pixels_ || width > pixels_ || height * width != pixels_)
      throw InputError(
          fmt::format("{}: expected images of {} pixels, which is the input of the network, got {} x {}",
                      images, pixels_, height, width));
    samples_ = images_.big_endian(4);
    check_size(images_, kImagesHeader + samples_ * pixels_);
    const std::int64_t count = labels_.big_endian(4);
    check_size(labels_, kLabelsHeader + count);
    if (samples_ == 0) throw InputError(fmt::format("{}: expected at least one image, got none", images));
    if (count != samples_)
      throw InputError(fmt::format("{}: expected {} labels, one for each image of {}, got {}", labels,
                                   samples_, images, count));
    check_labels(form.classes);
  }

  std::int64_t samples() const override { return samples_; }

  void read(std::int64_t sample, std::span<float> input, std::span<float> targets) const override {
    std::vector<unsigned char> bytes(input.size());
    images_.read(kImagesHeader + sample * pixels_, bytes);
    for (std::size_t i = 0; i < bytes.size(); ++i) input[i] = bytes[i] / 255.0F;
    unsigned char label = 0;
    labels_.read(kLabelsHeader + sample, {&label, 1});
    targets[0] = label;
  }

 private:
  void check_labels(std::int64_t classes) const {
    std::vector<unsigned char> labels(samples_);
    labels_.read(kLabelsHeader, labels);
    for (std::size_t i = 0; i < labels.size(); ++i) {
      if (labels[i] < classes) continue;
      throw InputError(fmt::format("{}: label {}: expected a class from 0 to {}, got {}", labels_.name(), i,
                                   classes - 1, labels[i]));
    }
  }

  BinaryFile images_, labels_;
  std::int64_t pixels_, samples_ = 0;
};

}  // namespace

std::unique_ptr<Dataset> idx_files(const std::string& images, const std::string& labels,
                                   const SampleForm& form) {
  return std::make_unique<IdxFiles>(images, labels, form);
}

namespace {

/// Samples in files of records of equal size.
class Records : public Dataset {
 public:
  Records(const std::vector<std::string>& names, std::size_t bytes) : bytes_(bytes) {
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
    if (sample < 0 || at == ends_.end())
      throw InputError(fmt::format("data: expected a sample from 0 to {}, got {}", samples() - 1, sample));
    const std::size_t file = at - ends_.begin();
    std::vector<unsigned char> bytes(bytes_);
    files_[file].read((sample - (file == 0 ? 0 : ends_[file - 1])) * bytes_, bytes);
    return bytes;
  }
  [[noreturn]] void refuse_label(std::int64_t sample, double label, std::int64_t classes) const {
    throw InputError(fmt::format("{}: label of sample {}: expected a class from 0 to {}, got {}",
                                 file_of(sample), sample, classes - 1, label));
  }
  const std::string& file_of(std::int64_t sample) const {
    return files_[std::upper_bound(ends_.begin(), ends_.end(), sample) - ends_.begin()].name();
  }

 private:
  std::int64_t bytes_;
  std::vector<BinaryFile> files_;
  std::vector<std::int64_t> ends_;  ///< number of samples up to the end of each file
};

class Cifar10 : public Records {
 public:
  Cifar10(const std::vector<std::string>& files, const SampleForm& form)
      : Records(files, 1 + sample_numbers(form.input)), classes_(form.classes) {}

  void read(std::int64_t sample, std::span<float> input, std::span<float> targets) const override {
    const std::vector<unsigned char> bytes = record(sample);
    if (bytes[0] >= classes_) refuse_label(sample, bytes[0], classes_);
    targets[0] = bytes[0];
    for (std::size_t i = 0; i < input.size(); ++i) input[i] = bytes[i + 1] / 255.0F;
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
      const bool is_class = label >= 0 && label < classes_ && label == std::floor(label);
      if (!is_class) refuse_label(sample, label, classes_);
    }
  }

 private:
  void check_finite(std::int64_t sample, std::span<const float> numbers) const {
    if (std::all_of(numbers.begin(), numbers.end(), [](float number) { return std::isfinite(number); }))
      return;
    throw InputError(
        fmt::format("{}: sample {}: expected finite numbers, got one that is not", file_of(sample), sample));
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

namespace {

using Kind = DataOptions::Kind;

void require(bool served, const DataOptions& options, const char* form) {
  if (served) return;
  throw InputError(fmt::format("data: {} needs a network with {}", data_kind_words().of(options.kind), form));
}

void check_form(const DataOptions& options, const SampleForm& form) {
  const std::size_t dimensions = form.input.size(), labels = sample_numbers(form.targets);
  switch (options.kind) {
    case Kind::images:
      return require(dimensions == 3 && labels == 1 && form.classes >= 2, options,
                     "an input of [channels, height, width] and one class a sample");
    case Kind::mesh:
      return require(dimensions == 3 && form.targets.size() >= 2 && form.classes == 2, options,
                     "an input of [channels, height, width] and yes or no for each of [height, width]");
    case Kind::sequences:
      return require(dimensions == 2 && labels == 1 && form.classes >= 2, options,
                     "an input of [time, features] and one class a sample");
    case Kind::showers:
      return require(dimensions == 4 && (labels == 0 || (labels == 1 && form.classes == 2)), options,
                     "an input of [channels, depth, height, width] and yes or no for each sample");
    case Kind::idx:
    case Kind::cifar10:
      return require(labels == 1 && form.classes >= 2, options, "one class a sample");
    case Kind::raw:
      return;
  }
}

std::unique_ptr<Dataset> generated_data(const DataOptions& options, const SampleForm& form,
                                        std::int64_t first, std::int64_t count) {
  if (options.kind == Kind::images) return generated_images(options, form, first, count);
  if (options.kind == Kind::mesh) return generated_mesh(options, form, first, count);
  if (options.kind == Kind::sequences) return generated_sequences(options, form, first, count);
  return generated_showers(options, form, first, count);
}

std::unique_ptr<Dataset> file_data(const DataOptions& options, const SampleForm& form, bool train) {
  const auto& files = train ? options.train : options.test;
  if (options.kind == Kind::cifar10) return cifar10_files(files, form);
  if (options.kind == Kind::raw) return raw_files(files, form);
  const auto& labels = train ? options.train_labels : options.test_labels;
  return idx_files(files.at(0), labels.at(0), form);
}

/// The samples of a data set that are in one fold of several, or all others.
class CrossValidationFold : public Dataset {
 public:
  enum class Part { held_out, others };
  CrossValidationFold(std::shared_ptr<const Dataset> all, const DataOptions& options, Part part)
      : all_(std::move(all)), part_(part), fold_(options.fold), folds_(options.folds) {
    held_out_ = (all_->samples() - fold_ + folds_ - 1) / folds_;
    most_ = part == Part::held_out ? options.test_samples : all_->samples();
  }

  std::int64_t samples() const override {
    return std::min(most_, part_ == Part::held_out ? held_out_ : all_->samples() - held_out_);
  }
  void read(std::int64_t sample, std::span<float> input, std::span<float> targets) const override {
    all_->read(part_ == Part::held_out ? sample * folds_ + fold_ : other(sample), input, targets);
  }

 private:
  /// Every block of `folds` samples loses the one at place `fold`.
  std::int64_t other(std::int64_t sample) const {
    const std::int64_t block = sample / (folds_ - 1), place = sample % (folds_ - 1);
    return block * folds_ + place + (place >= fold_ ? 1 : 0);
  }

  std::shared_ptr<const Dataset> all_;
  Part part_;
  std::int64_t fold_, folds_, held_out_ = 0, most_ = 0;
};

}  // namespace

TrainAndTest make_data(const DataOptions& options, const SampleForm& form) {
  check_form(options, form);
  if (options.folds > 1) {
    const std::shared_ptr<const Dataset> all = is_generated(options.kind)
                                                   ? generated_data(options, form, 0, options.samples)
                                                   : file_data(options, form, true);
    if (all->samples() < options.folds)
      throw InputError(fmt::format("data: expected at least {} samples, one for each fold, got {}",
                                   options.folds, all->samples()));
    return {std::make_unique<CrossValidationFold>(all, options, CrossValidationFold::Part::others),
            std::make_unique<CrossValidationFold>(all, options, CrossValidationFold::Part::held_out)};
  }
  if (!is_generated(options.kind)) return {file_data(options, form, true), file_data(options, form, false)};
  return {generated_data(options, form, 0, options.samples),
          generated_data(options, form, options.samples, options.test_samples)};
}

}  // namespace stepcast
