#include "validate/checkpoint.hpp"

#include <fmt/format.h>

#include <bit>
#include <cstring>

#include "core/error.hpp"
#include "report/atomic_file.hpp"

namespace stepcast {
namespace {

static_assert(std::endian::native == std::endian::little);

std::size_t numbers_of(const Model& model) {
  std::size_t numbers = 0;
  for (const Layer& layer : model.layers) {
    for (const ParameterTensor& tensor : layer.parameters)
      numbers += static_cast<std::size_t>(tensor.elements());
  }
  return numbers;
}

std::string head_of(const Model& model) {
  return fmt::format("stepcast parameters {} {}\n", model.name, numbers_of(model));
}

}  // namespace

Parameters read_parameters(Network& network) {
  Parameters parameters;
  const auto& layers = network.model().layers;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    for (std::size_t k = 0; k < layers[i].parameters.size(); ++k)
      parameters.push_back(network.contains(i) ? network.kernel(i).read_parameter(k) : std::vector<float>());
  }
  return parameters;
}

void write_parameters(Network& network, const Parameters& parameters) {
  auto next = parameters.begin();
  const auto& layers = network.model().layers;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    for (std::size_t k = 0; k < layers[i].parameters.size(); ++k, ++next) {
      if (network.contains(i)) network.kernel(i).write_parameter(k, *next);
    }
  }
}

void save_checkpoint(const std::filesystem::path& file, const Model& model, const Parameters& parameters) {
  std::string text = head_of(model);
  for (const std::vector<float>& array : parameters)
    text.append(reinterpret_cast<const char*>(array.data()), sizeof(float) * array.size());
  write_atomically(file, text);
}

Parameters load_checkpoint(const std::filesystem::path& file, const Model& model) {
  const std::string text = read_file(file), head = head_of(model);
  if (!text.starts_with(head))
    throw InputError(fmt::format("{}: expected a checkpoint that begins with \"{}\"", file.string(),
                                 head.substr(0, head.size() - 1)));
  const std::size_t expected = head.size() + sizeof(float) * numbers_of(model);
  if (text.size() != expected)
    throw InputError(fmt::format("{}: expected {} bytes, got {}", file.string(), expected, text.size()));
  const char* from = text.data() + head.size();
  Parameters parameters;
  for (const Layer& layer : model.layers) {
    for (const ParameterTensor& tensor : layer.parameters) {
      std::vector<float>& array = parameters.emplace_back(static_cast<std::size_t>(tensor.elements()));
      std::memcpy(array.data(), from, sizeof(float) * array.size());
      from += sizeof(float) * array.size();
    }
  }
  return parameters;
}

}  // namespace stepcast
