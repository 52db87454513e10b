#include "data/dataset.hpp"

#include "core/error.hpp"

namespace stepcast {

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
  const auto count = static_cast<std::size_t>(split_.batch);
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

}  // namespace stepcast
