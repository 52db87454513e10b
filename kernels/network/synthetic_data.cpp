#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>
#include <thread>
#include <vector>

#include "kernels/network/network.hpp"

namespace stepcast {
namespace {

// Random streams of Purpose::data: the key's `worker` is the layer, its `step` is one of these.
enum Stream : std::uint32_t {
  input_stream = 0,
  gradient_stream = 1,
  target_stream = 2,
  parameter_stream = 3
};

std::size_t element_count(const Shape& shape) {
  return elements(shape);
}

/// Calls run(begin, end) for ranges of [0, count) on all cores of the machine: one core would take a second
/// for a network of 138 million parameters.
void in_parallel(std::size_t count, const std::function<void(std::size_t, std::size_t)>& run) {
  constexpr std::size_t kSmallestRange = 1 << 18;
  const std::size_t cores = std::max(1U, std::thread::hardware_concurrency());
  const std::size_t ranges = std::clamp<std::size_t>(count / kSmallestRange, 1, cores);
  std::vector<std::jthread> threads;
  for (std::size_t range = 1; range < ranges; ++range)
    threads.emplace_back([&, range] { run(count * range / ranges, count * (range + 1) / ranges); });
  run(0, count / ranges);
}

std::vector<float> uniform_values(std::size_t count, const RandomKey& key, double bound) {
  std::vector<float> values(count);
  in_parallel((count + 1) / 2, [&](std::size_t begin, std::size_t end) {
    RandomKey own = key;
    for (std::size_t i = begin; i < end; ++i) {
      own.item = i;
      const UniformPair pair = uniform_pair(own);
      values[2 * i] = bound * (2 * pair.first - 1);
      if (2 * i + 1 < count) values[2 * i + 1] = bound * (2 * pair.second - 1);
    }
  });
  return values;
}

std::vector<float> indices(std::size_t count, RandomKey key, std::int64_t below) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    key.item = i;
    values[i] = uniform_index(key, below);
  }
  return values;
}

bool scaled_by_row_length(LayerKind kind) {
  return kind == LayerKind::lstm || kind == LayerKind::gru || kind == LayerKind::embedding ||
         kind == LayerKind::position_embedding || kind == LayerKind::class_token;
}

/// Number of products that an output of the layer sums, for a weight of this size.
double fan_in(const Layer& layer, const ParameterTensor& weight) {
  const bool shares =
      layer.kind != LayerKind::locally_connected;  // the filters of a position with the others
  if (layer.kind == LayerKind::experts) return weight.shape.back();
  return elements(weight.shape) / static_cast<double>(shares ? weight.shape.front() : elements(layer.output));
}

/// True if a loss reads the layer's output.
bool feeds_loss(const std::vector<Layer>& layers, std::size_t layer) {
  return std::ranges::any_of(layers, [&](const Layer& reader) {
    return is_loss(reader.kind) && std::cmp_equal(reader.inputs.front(), layer);
  });
}

/// Bound of a uniform distribution with the standard deviation 0.01. With it, the predictions of an untrained
/// network hardly differ, so that its loss is that of a guess. Source: P. Goyal et al., arXiv:1706.02677,
/// section 5.1, on the last layer.
constexpr double kLastLayerBound = 0.01 * std::numbers::sqrt3;

}  // namespace

void fill_uniform(Tensor& tensor, RandomKey key) {
  tensor.write(uniform_values(element_count(tensor.shape()), key, 1));
}

std::vector<float> initial_values(const std::vector<Layer>& layers, std::size_t layer, std::size_t parameter,
                                  std::uint64_t seed) {
  const ParameterTensor& tensor = layers.at(layer).parameters.at(parameter);
  const std::size_t count = element_count(tensor.shape);
  if (tensor.name == "scale" || tensor.name == "running_variance") return std::vector<float>(count, 1);
  if (tensor.name.rfind("weight", 0) != 0) return std::vector<float>(count, 0);
  const RandomKey key{.seed = seed,
                      .purpose = Purpose::data,
                      .worker = static_cast<std::uint32_t>(layer),
                      .step = parameter_stream + static_cast<std::uint32_t>(parameter)};
  const double row = tensor.shape.back();
  if (feeds_loss(layers, layer)) return uniform_values(count, key, kLastLayerBound);
  if (scaled_by_row_length(layers[layer].kind)) return uniform_values(count, key, 1 / std::sqrt(row));
  return uniform_values(count, key, std::sqrt(6 / fan_in(layers[layer], tensor)));
}

void fill_input(Tensor& input, const Model& model, std::uint64_t seed) {
  const RandomKey key{.seed = seed, .purpose = Purpose::data, .step = input_stream};
  std::int64_t rows = 0;  // of the smallest table that the input's indices choose from; 0: there is none
  for (const Layer& layer : model.layers) {
    if (layer.kind != LayerKind::embedding || layer.inputs.front() >= 0) continue;
    const std::int64_t own = layer.parameters.front().shape.front();
    rows = rows == 0 ? own : std::min(rows, own);
  }
  if (rows > 0) return input.write(indices(element_count(input.shape()), key, rows));
  fill_uniform(input, key);
}

void fill_targets(Tensor& targets, const Layer& loss, std::size_t index, std::uint64_t seed) {
  const RandomKey key{.seed = seed,
                      .purpose = Purpose::data,
                      .worker = static_cast<std::uint32_t>(index),
                      .step = target_stream};
  const std::size_t count = element_count(targets.shape());
  if (loss.kind == LayerKind::softmax_cross_entropy) {
    targets.write(indices(count, key, loss.input.back()));
  } else if (loss.kind == LayerKind::sigmoid_cross_entropy) {
    targets.write(indices(count, key, 2));
  } else {
    targets.write(uniform_values(count, key, 1));
  }
}

void Network::fill_parameters() {
  const SharedPart* part = shared_part();
  const std::vector<Layer>& layers = (part == nullptr ? model_ : part->whole).layers;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    for (std::size_t k = 0; contains(i) && k < layers[i].parameters.size(); ++k) {
      const std::vector<float> values = initial_values(layers, i, k, options_.seed);
      kernels_[i]->write_parameter(k, part == nullptr ? values : extract_part(values, *part, i, k));
    }
  }
}

void Network::fill_with_synthetic_data(std::uint64_t seed) {
  fill_input(*input_, model_, seed);
  for (std::size_t i = 0; i < kernels_.size(); ++i) {
    Tensor* targets = contains(i) ? kernels_[i]->targets() : nullptr;
    if (targets != nullptr) fill_targets(*targets, model_.layers[i], i, seed);
  }
}

void Network::reset() {
  fill_parameters();
  for (const auto& state : states_) backend_.clear(state.get(), all_.elements);
  if (options_.part.accumulate) backend_.clear(sums_.get(), all_.elements);
  step_ = 0;
}

}  // namespace stepcast
