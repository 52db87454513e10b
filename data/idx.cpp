#include <fmt/format.h>

#include "core/error.hpp"
#include "data/binary_file.hpp"
#include "data/files.hpp"

namespace stepcast {
namespace {

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
        fmt::format("{}: its header asks for {} bytes, it has {}", file.name(), expected, file.size()));
}

class IdxFiles : public Dataset {
 public:
  IdxFiles(const std::string& images, const std::string& labels, const SampleForm& form)
      : images_(images), labels_(labels), pixels_(static_cast<std::int64_t>(sample_numbers(form.input))) {
    check_magic(images_, kImages);
    check_magic(labels_, kLabels);
    const std::int64_t height = images_.big_endian(8), width = images_.big_endian(12);
    if (height > pixels_ || width > pixels_ || height * width != pixels_)
      throw InputError(fmt::format("{}: images of {} x {} pixels, the network takes {} numbers", images,
                                   height, width, pixels_));
    samples_ = images_.big_endian(4);
    check_size(images_, kImagesHeader + samples_ * pixels_);
    const std::int64_t count = labels_.big_endian(4);
    check_size(labels_, kLabelsHeader + count);
    if (count != samples_)
      throw InputError(fmt::format("{}: {} labels for {} images of {}", labels, count, samples_, images));
    check_labels(form.classes);
  }

  std::int64_t samples() const override { return samples_; }

  void read(std::int64_t sample, std::span<float> input, std::span<float> targets) const override {
    std::vector<unsigned char> bytes(input.size());
    images_.read(kImagesHeader + sample * pixels_, bytes);
    for (std::size_t i = 0; i < bytes.size(); ++i) input[i] = static_cast<float>(bytes[i]) / 255;
    unsigned char label = 0;
    labels_.read(kLabelsHeader + sample, {&label, 1});
    targets[0] = label;
  }

 private:
  void check_labels(std::int64_t classes) const {
    std::vector<unsigned char> labels(static_cast<std::size_t>(samples_));
    labels_.read(kLabelsHeader, labels);
    for (std::size_t i = 0; i < labels.size(); ++i) {
      if (labels[i] < classes) continue;
      throw InputError(fmt::format("{}: label {} is {}, the network has {} classes", labels_.name(), i,
                                   labels[i], classes));
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

}  // namespace stepcast
