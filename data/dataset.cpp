#include "data/dataset.hpp"

#include <fmt/format.h>

#include "core/error.hpp"
#include "data/files.hpp"
#include "data/generated.hpp"

namespace stepcast {
namespace {

using Kind = DataOptions::Kind;

void need(bool served, const DataOptions& options, const char* form) {
  if (served) return;
  throw InputError(fmt::format("data: {} needs a network with {}",
                               data_kind_names()[static_cast<std::size_t>(options.kind)], form));
}

void check_form(const DataOptions& options, const SampleForm& form) {
  const std::size_t dimensions = form.input.size(), labels = sample_numbers(form.targets);
  switch (options.kind) {
    case Kind::images:
      return need(dimensions == 3 && labels == 1 && form.classes >= 2, options,
                  "an input of [channels, height, width] and one class a sample");
    case Kind::mesh:
      return need(dimensions == 3 && form.targets.size() >= 2 && form.classes == 2, options,
                  "an input of [channels, height, width] and yes or no for each of [height, width]");
    case Kind::sequences:
      return need(dimensions == 2 && labels == 1 && form.classes >= 2, options,
                  "an input of [time, features] and one class a sample");
    case Kind::showers:
      return need(dimensions == 4 && labels == 1 && form.classes == 2, options,
                  "an input of [channels, depth, height, width] and yes or no for each sample");
    case Kind::idx:
    case Kind::cifar10:
      return need(labels == 1 && form.classes >= 2, options, "one class a sample");
    case Kind::raw:
      return;
  }
}

std::unique_ptr<Dataset> generated(const DataOptions& options, const SampleForm& form, std::int64_t first,
                                   std::int64_t count) {
  if (options.kind == Kind::images) return generated_images(options, form, first, count);
  if (options.kind == Kind::mesh) return generated_mesh(options, form, first, count);
  if (options.kind == Kind::sequences) return generated_sequences(options, form, first, count);
  return generated_showers(options, form, first, count);
}

std::unique_ptr<Dataset> of_files(const DataOptions& options, const SampleForm& form, bool train) {
  const auto& files = train ? options.train : options.test;
  if (options.kind == Kind::cifar10) return cifar10_files(files, form);
  if (options.kind == Kind::raw) return raw_files(files, form);
  const auto& labels = train ? options.train_labels : options.test_labels;
  return idx_files(files.at(0), labels.at(0), form);
}

}  // namespace

std::size_t sample_numbers(const std::vector<std::int64_t>& shape) {
  std::size_t product = 1;
  for (const std::int64_t size : shape) product *= static_cast<std::size_t>(size);
  return product;
}

const std::vector<std::string>& data_kind_names() {
  static const std::vector<std::string> names{"images", "mesh",    "sequences", "showers",
                                              "idx",    "cifar10", "raw"};
  return names;
}

bool is_generated(Kind kind) {
  return kind <= Kind::showers;
}

TrainAndTest make_data(const DataOptions& options, const SampleForm& form) {
  check_form(options, form);
  if (!is_generated(options.kind)) return {of_files(options, form, true), of_files(options, form, false)};
  return {generated(options, form, 0, options.samples),
          generated(options, form, options.samples, options.test_samples)};
}

}  // namespace stepcast
