#include <algorithm>
#include <cmath>
#include <limits>

#include "core/yaml.hpp"
#include "gpu/check/check_layers.hpp"
#include "kernels/network/network.hpp"

namespace stepcast {
namespace {

constexpr int kWays = 2;
constexpr std::int64_t kBatch = 4;

/// One transformer block with a vocabulary of 11, which two ranks cannot share evenly.
constexpr const char* kStack = R"(
name: stack
source: test
transformer_stack: {layers: 1, width: 16, heads: 4, sequence: 6, vocabulary: 11}
)";

Model stack() {
  const YamlNode text = parse_yaml(kStack, "stack");
  return read_model(YamlValue(text, ""));
}

struct Part {
  SharedPart part;
  std::unique_ptr<Network> network = nullptr;

  LayerKernel& kernel(std::size_t layer) { return network->kernel(layer); }
};

/// The shards of a network, with the same data as the whole network.
std::vector<Part> parts_of(Backend& backend, Network& whole) {
  std::vector<Part> parts;
  for (int place = 0; place < kWays; ++place) parts.push_back({tensor_shard(whole.model(), kWays, place)});
  const std::size_t loss = whole.model().layers.size() - 1;
  for (Part& one : parts) {
    NetworkOptions options{.batch = kBatch};
    options.part.tensor_shard = &one.part;
    one.network = std::make_unique<Network>(backend, one.part.model, options);
    one.network->input().write(whole.input().read());
    one.kernel(loss).targets()->write(whole.kernel(loss).targets()->read());
    for (std::size_t i = 0; i <= loss; ++i) {
      if (one.part.shares[i]) one.kernel(i).defer_sums();
    }
  }
  return parts;
}

void run(Backend& backend, std::vector<Part>& parts, std::size_t layer, Pass pass) {
  for (Part& one : parts) {
    if (one.network->has(layer, pass)) one.network->run(layer, pass);
  }
  const std::span<float> sum = parts.front().kernel(layer).partial_sums(pass);
  if (sum.empty()) return;
  const auto size = static_cast<std::int64_t>(sum.size());
  for (std::size_t k = 1; k < parts.size(); ++k)
    backend.add(parts[k].kernel(layer).partial_sums(pass).data(), sum.data(), sum.size());
  for (std::size_t k = 1; k < parts.size(); ++k)
    backend.move({.size = {size}, .from_stride = {1}, .to_stride = {1}}, sum.data(),
                 parts[k].kernel(layer).partial_sums(pass).data());
  for (Part& one : parts) one.kernel(layer).finish(pass);
}

double error_of(const std::vector<float>& found, const std::vector<float>& expected) {
  if (found.size() != expected.size()) return std::numeric_limits<double>::infinity();
  double worst = 0, size = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (!std::isfinite(found[i])) return std::numeric_limits<double>::infinity();
    worst = std::max(worst, static_cast<double>(std::abs(found[i] - expected[i])));
    size = std::max(size, static_cast<double>(std::abs(expected[i])));
  }
  return size > 0 ? worst / size : worst;
}

void compare(Network& whole, Part& one, std::vector<Deviation>& found) {
  found.push_back({"shared layers", "loss",
                   error_of({static_cast<float>(one.network->loss())}, {static_cast<float>(whole.loss())})});
  for (std::size_t i = 0; i < whole.model().layers.size(); ++i) {
    const Layer& layer = whole.model().layers[i];
    for (std::size_t k = 0; k < layer.parameters.size(); ++k) {
      const auto expected = extract_part(whole.kernel(i).read_gradient(k), one.part, i, k);
      found.push_back({"shared " + layer.name, "parameter " + std::to_string(k),
                       error_of(one.kernel(i).read_gradient(k), expected)});
    }
  }
}

std::vector<Deviation> compared(Backend& backend) {
  Network whole(backend, stack(), {.batch = kBatch});
  std::vector<Part> parts = parts_of(backend, whole);
  whole.step();
  const std::size_t layers = whole.model().layers.size();
  for (std::size_t i = 0; i < layers; ++i) run(backend, parts, i, Pass::forward);
  for (std::size_t i = layers; i-- > 0;) {
    run(backend, parts, i, Pass::backward_data);
    run(backend, parts, i, Pass::backward_weights);
  }
  std::vector<Deviation> found;
  for (Part& one : parts) compare(whole, one, found);
  return found;
}

}  // namespace

std::vector<Deviation> check_partitioned_layers(Backend& backend) {
  try {
    return compared(backend);
  } catch (const std::exception& error) {
    return {{"shared layers", error.what(), std::numeric_limits<double>::infinity()}};
  }
}

}  // namespace stepcast
