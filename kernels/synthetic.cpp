#include "kernels/synthetic.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <thread>
#include <vector>

namespace stepcast {
namespace {

// Streams of Purpose::data: `worker` says which layer, `step` what for.
enum Stream : std::uint32_t {
  input_stream = 0,
  gradient_stream = 1,
  target_stream = 2,
  parameter_stream = 3
};

std::size_t elements(const Shape& shape) {
  std::size_t product = 1;
  for (const std::int64_t size : shape) product *= static_cast<std::size_t>(size);
  return product;
}

/// Calls run(begin, end) for parts of [0, count) on the cores that this process has: a network of 138 million
/// parameters takes one core a second.
void in_parts(std::size_t count, const std::function<void(std::size_t, std::size_t)>& run) {
  constexpr std::size_t kLeast = 1 << 18;
  const std::size_t cores = std::max(1U, std::thread::hardware_concurrency());
  const std::size_t parts = std::clamp<std::size_t>(count / kLeast, 1, cores);
  std::vector<std::jthread> threads;
  for (std::size_t part = 1; part < parts; ++part)
    threads.emplace_back([&, part] { run(count * part / parts, count * (part + 1) / parts); });
  run(0, count / parts);
}

std::vector<float> uniform_values(std::size_t count, const RandomKey& key, double bound) {
  std::vector<float> values(count);
  in_parts((count + 1) / 2, [&](std::size_t begin, std::size_t end) {
    RandomKey own = key;
    for (std::size_t i = begin; i < end; ++i) {
      own.item = static_cast<std::uint32_t>(i);
      const UniformPair pair = uniform_pair(own);
      values[2 * i] = static_cast<float>(bound * (2 * pair.first - 1));
      if (2 * i + 1 < count) values[2 * i + 1] = static_cast<float>(bound * (2 * pair.second - 1));
    }
  });
  return values;
}

std::vector<float> indices(std::size_t count, RandomKey key, std::int64_t below) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    key.item = static_cast<std::uint32_t>(i);
    values[i] = static_cast<float>(uniform_index(key, static_cast<std::size_t>(below)));
  }
  return values;
}

bool by_rows(LayerKind kind) {
  return kind == LayerKind::lstm || kind == LayerKind::gru || kind == LayerKind::embedding;
}

std::vector<float> initial_values(const Layer& layer, const ParameterTensor& tensor, const RandomKey& key) {
  const std::size_t count = elements(tensor.shape);
  if (tensor.name == "scale" || tensor.name == "running_variance") return std::vector<float>(count, 1);
  if (tensor.name.rfind("weight", 0) != 0) return std::vector<float>(count, 0);
  const double row = static_cast<double>(tensor.shape.back());
  const double fan_in = static_cast<double>(count) / static_cast<double>(tensor.shape.front());
  return uniform_values(count, key, by_rows(layer.kind) ? 1 / std::sqrt(row) : std::sqrt(6 / fan_in));
}

void fill_targets(Tensor& targets, const Layer& layer, const RandomKey& key) {
  const std::size_t count = elements(targets.shape());
  if (layer.kind == LayerKind::softmax_cross_entropy) {
    targets.write(indices(count, key, layer.input.back()));
  } else if (layer.kind == LayerKind::sigmoid_cross_entropy) {
    targets.write(indices(count, key, 2));
  } else {
    targets.write(uniform_values(count, key, 1));
  }
}

void fill_input(Network& network, const RandomKey& key) {
  for (const Layer& layer : network.model().layers) {
    if (layer.kind != LayerKind::embedding || layer.inputs.front() >= 0) continue;
    const std::int64_t rows = layer.parameters.front().shape.front();
    return network.input().write(indices(elements(network.input().shape()), key, rows));
  }
  fill_uniform(network.input(), key);
}

}  // namespace

void fill_uniform(Tensor& tensor, RandomKey key) {
  tensor.write(uniform_values(elements(tensor.shape()), key, 1));
}

void fill_parameters(Network& network, std::uint64_t seed) {
  const SharedPart* part = network.shared_part();
  const std::vector<Layer>& layers = (part == nullptr ? network.model() : part->whole).layers;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    for (std::size_t k = 0; network.contains(i) && k < layers[i].parameters.size(); ++k) {
      const RandomKey key{.seed = seed,
                          .purpose = Purpose::data,
                          .worker = static_cast<std::uint32_t>(i),
                          .step = parameter_stream + static_cast<std::uint32_t>(k)};
      const std::vector<float> values = initial_values(layers[i], layers[i].parameters[k], key);
      network.kernel(i).write_parameter(k, part == nullptr ? values : own_part(values, *part, i, k));
    }
  }
}

void fill_with_synthetic_data(Network& network, std::uint64_t seed) {
  fill_input(network, {.seed = seed, .purpose = Purpose::data, .step = input_stream});
  const std::vector<Layer>& layers = network.model().layers;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    Tensor* targets = network.contains(i) ? network.kernel(i).targets() : nullptr;
    if (targets == nullptr) continue;
    const auto layer = static_cast<std::uint32_t>(i);
    fill_targets(*targets, layers[i],
                 {.seed = seed, .purpose = Purpose::data, .worker = layer, .step = target_stream});
  }
}

}  // namespace stepcast
