#include "runtime/memory/parameters.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <iterator>

#include "core/error.hpp"
#include "core/os/files.hpp"

namespace stepcast {

ParameterLayout::ParameterLayout(const Network& network) {
  const ParameterView& all = network.all_parameters();
  Start start;
  const auto& layers = network.model().layers;
  for (std::size_t layer = 0; layer < layers.size(); ++layer) {
    if (!network.contains(layer)) continue;
    auto view = network.parameters(layer).begin();
    for (const ParameterTensor& tensor : layers[layer].parameters) {
      if (!tensor.trainable) continue;
      start.stored = view->value - all.value;
      arrays_.push_back(start);
      start.model += tensor.elements();
      ++view;
    }
  }
  arrays_.push_back({start.model, static_cast<std::int64_t>(all.elements)});
}

Slice ParameterLayout::stored(const Slice& of_model) const {
  return {stored(of_model.begin), stored(of_model.end)};
}

std::int64_t ParameterLayout::stored(std::int64_t of_model) const {
  if (of_model >= model_elements()) return stored_elements();
  const auto after =
      std::upper_bound(arrays_.begin(), arrays_.end(), of_model,
                       [](std::int64_t element, const Start& start) { return element < start.model; });
  const Start& start = *(after - 1);
  return std::min(start.stored + of_model - start.model, after->stored);
}

std::vector<float> stored_parameters(const Network& network) {
  const ParameterView& all = network.all_parameters();
  DeviceMemory* device = network.backend().device_memory();
  if (device == nullptr) return {all.value, all.value + all.elements};
  std::vector<float> values(all.elements);
  device->to_host(device->record_event(), all.value, values.data(), all.elements);
  return values;
}

void store_parameters(const float* values, Network& network) {
  const ParameterView& all = network.all_parameters();
  DeviceMemory* device = network.backend().device_memory();
  if (device == nullptr) {
    std::copy_n(values, all.elements, all.value);
    return;
  }
  network.backend().finish();  // otherwise running kernels would read the new values
  device->to_device(values, all.value, all.elements);
}

namespace {

static_assert(std::endian::native == std::endian::little);

std::size_t numbers_of(const Model& model) {
  std::size_t numbers = 0;
  for (const Layer& layer : model.layers) {
    for (const ParameterTensor& tensor : layer.parameters) numbers += tensor.elements();
  }
  return numbers;
}

std::string header_of(const Model& model) {
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
  std::string text = header_of(model);
  for (const std::vector<float>& array : parameters)
    text.append(reinterpret_cast<const char*>(array.data()), sizeof(float) * array.size());
  write_atomically(file, text);
}

Parameters load_checkpoint(const std::filesystem::path& file, const Model& model) {
  const std::string text = read_file(file), header = header_of(model);
  if (!text.starts_with(header))
    throw InputError(fmt::format("{}: expected a checkpoint that begins with \"{}\"", file.string(),
                                 header.substr(0, header.size() - 1)));
  const std::size_t expected = header.size() + sizeof(float) * numbers_of(model);
  if (text.size() != expected)
    throw InputError(fmt::format("{}: expected {} bytes, got {}", file.string(), expected, text.size()));
  const char* from = text.data() + header.size();
  Parameters parameters;
  for (const Layer& layer : model.layers) {
    for (const ParameterTensor& tensor : layer.parameters) {
      std::vector<float>& array = parameters.emplace_back(tensor.elements());
      std::memcpy(array.data(), from, sizeof(float) * array.size());
      from += sizeof(float) * array.size();
    }
  }
  return parameters;
}

HostMirror::HostMirror(Network& network)
    : network_(network),
      device_(*network.backend().device_memory()),
      elements_(network.all_parameters().elements),
      values_{device_.host_memory(elements_), network.all_parameters().value},
      gradients_{device_.host_memory(elements_), network.all_parameters().gradient} {}

HostMirror::MappedArray* HostMirror::mapped_array(std::span<const float> part) {
  for (MappedArray* mapped : {&values_, &gradients_}) {
    if (part.data() >= mapped->host.get() && part.data() + part.size() <= mapped->host.get() + elements_)
      return mapped;
  }
  return nullptr;
}

float* HostMirror::on_device(std::span<const float> part) {
  const MappedArray* mapped = mapped_array(part);
  return mapped == nullptr ? nullptr : mapped->device + (part.data() - mapped->host.get());
}

void HostMirror::fetch(std::span<float> part, const DeviceMemory::Event& after) {
  device_.to_host(after, on_device(part), part.data(), part.size());
}

void HostMirror::store(std::span<const float> part) {
  device_.to_device(part.data(), on_device(part), part.size());
}

void HostMirror::copy_to_host(const MappedArray& mapped, std::size_t begin, std::size_t end) {
  if (begin < end)
    device_.to_host(device_.record_event(), mapped.device + begin, mapped.host.get() + begin, end - begin);
}

void HostMirror::map_to_host(std::span<float> part) {
  MappedArray* mapped = mapped_array(part);
  if (mapped == nullptr || part.empty()) return;
  std::size_t begin = part.data() - mapped->host.get(), end = begin + part.size();
  std::size_t missing = begin;  // first element that is not mapped yet
  auto one = mapped->ranges.upper_bound(begin);
  if (one != mapped->ranges.begin() && std::prev(one)->second >= begin) --one;
  while (one != mapped->ranges.end() && one->first <= end) {
    copy_to_host(*mapped, missing, one->first);
    missing = std::max(missing, one->second);
    begin = std::min(begin, one->first);
    one = mapped->ranges.erase(one);
  }
  copy_to_host(*mapped, missing, end);
  mapped->ranges[begin] = std::max(missing, end);
}

void HostMirror::unmap() {
  for (MappedArray* mapped : {&values_, &gradients_}) {
    for (const auto& [begin, end] : mapped->ranges) store({mapped->host.get() + begin, end - begin});
    mapped->ranges.clear();
  }
}

const float* HostMirror::uploaded(std::span<const float> values) {
  if (const float* address = on_device(values)) return address;
  if (scratch_ == nullptr) scratch_ = network_.backend().allocate(elements_);
  finish();  // kernels may still read the previous copy
  device_.to_device(values.data(), scratch_.get(), values.size());
  return scratch_.get();
}

}  // namespace stepcast
