#include "data/dataset.hpp"

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

}  // namespace stepcast
