#include "data/train_and_test.hpp"

#include <fmt/format.h>

#include "core/error.hpp"
#include "data/file_readers.hpp"
#include "data/generated.hpp"

namespace stepcast {
namespace {

using Kind = DataOptions::Kind;

void require(bool served, const DataOptions& options, const char* form) {
  if (served) return;
  throw InputError(fmt::format("data: {} needs a network with {}",
                               data_kind_names()[static_cast<std::size_t>(options.kind)], form));
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
      return require(dimensions == 4 && labels == 1 && form.classes == 2, options,
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

}  // namespace

TrainAndTest make_data(const DataOptions& options, const SampleForm& form) {
  check_form(options, form);
  if (!is_generated(options.kind)) return {file_data(options, form, true), file_data(options, form, false)};
  return {generated_data(options, form, 0, options.samples),
          generated_data(options, form, options.samples, options.test_samples)};
}

}  // namespace stepcast
