#include "gpu/check/check_layers.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "check/layer_bench.hpp"
#include "core/error.hpp"
#include "core/yaml.hpp"
#include "kernels/network/dropout_mask.hpp"
#include "kernels/network/network.hpp"

namespace stepcast {

namespace {

using test::Array;
using test::Case;
using test::LayerBench;

constexpr double kLossWeight = 0.25;  // the weight of one of four micro-batches

/// Largest difference relative to the larger of 1 and the largest expected value; infinite if the lengths
/// differ or a value is not finite.
double error_of(const std::vector<float>& found, const Array& expected) {
  if (found.size() != expected.size()) return std::numeric_limits<double>::infinity();
  double worst = 0, size = 1;
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (!std::isfinite(found[i])) return std::numeric_limits<double>::infinity();
    worst = std::max(worst, std::abs(found[i] - expected[i]));
    size = std::max(size, std::abs(expected[i]));
  }
  return worst / size;
}

/// The gradient as two halves from two readers of the output, so that their sum is tested too.
std::vector<Array> two_halves(const Array& gradient) {
  Array half = gradient;
  for (double& value : half) value /= 2;
  return {half, half};
}

void check_one(Backend& backend, const std::string& name, Case c, std::vector<Deviation>& found) {
  const std::size_t first = found.size();
  c.dropout_key = dropout_key(test::kBenchSeed, 0, 0);
  LayerBench bench(backend, c, kLossWeight);
  Array expected = reference::forward(c);
  bench.kernel->run(Pass::forward);
  const bool is_loss = bench.kernel->targets() != nullptr;
  if (is_loss) expected.at(0) *= kLossWeight;
  const std::vector<float> output =
      is_loss ? std::vector<float>{static_cast<float>(bench.kernel->loss())} : bench.kernel->output().read();
  found.push_back({name, "output", error_of(output, expected)});
  const Array slope = is_loss ? Array{kLossWeight} : test::uniform_array(expected.size(), 99);
  bench.connect(backend, is_loss ? std::vector<Array>{} : two_halves(slope));
  bench.kernel->run(Pass::backward_data);
  bench.kernel->run(Pass::backward_weights);
  const reference::Gradients gradients = reference::backward(c, slope);
  for (std::size_t k = 0; k < c.inputs.size() && c.layer.kind != LayerKind::embedding; ++k) {
    found.push_back({name, "input " + std::to_string(k),
                     error_of(bench.kernel->input_gradient(k)->read(), gradients.inputs[k])});
  }
  for (std::size_t k = 0; k < c.parameters.size(); ++k) {
    if (!c.layer.parameters[k].trainable) continue;
    found.push_back({name, "parameter " + std::to_string(k),
                     error_of(bench.kernel->read_gradient(k), gradients.parameters[k])});
  }
  for (std::size_t i = first; i < found.size(); ++i) found[i].allowance = allowance_of(bench.kernel->notes());
}

/// A batch norm that computes the ReLU after it too, and the addition of a term before that.
void check_norm_with_relu(Backend& backend, std::int64_t channels, bool adds, std::vector<Deviation>& found) {
  const std::string name = adds ? "batch_norm, add and relu" : "batch_norm and relu";
  const test::NormBeforeRelu made = test::norm_before_relu(channels);
  Case inputs = made.norm;
  if (adds) inputs.inputs.push_back(made.term);
  LayerBench bench(backend, inputs, kLossWeight, true);
  Array expected = reference::forward(made.norm);
  Array masked = test::uniform_array(expected.size(), 99);
  bench.connect(backend, two_halves(masked));
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (adds) expected[i] += made.term[i];
    if (expected[i] <= 0) expected[i] = masked[i] = 0;
  }
  for (const Pass pass : {Pass::forward, Pass::backward_data, Pass::backward_weights})
    bench.kernel->run(pass);
  const reference::Gradients gradients = reference::backward(made.norm, masked);
  found.push_back({name, "output", error_of(bench.kernel->output().read(), expected)});
  found.push_back({name, "input 0", error_of(bench.kernel->input_gradient(0)->read(), gradients.inputs[0])});
  if (adds) found.push_back({name, "input 1", error_of(bench.kernel->input_gradient(1)->read(), masked)});
  for (std::size_t k = 0; k < 2; ++k)
    found.push_back({name, "parameter " + std::to_string(k),
                     error_of(bench.kernel->read_gradient(k), gradients.parameters[k])});
}

/// True if the GPU is unusable for this process: after an error such as an illegal access every call fails.
bool is_lost(Backend& backend) {
  try {
    backend.finish();
    return false;
  } catch (const std::exception&) {
    return true;
  }
}

}  // namespace

double rounding_tolerance(GpuPrecision precision) {
  switch (precision) {
    case GpuPrecision::f32:
      return 2e-5;
    case GpuPrecision::tf32:
    case GpuPrecision::f16:
      return 4.0 / (1 << 10);
    case GpuPrecision::bf16:
      break;
  }
  return 4.0 / (1 << 7);
}

double allowance_of(const std::string& notes) {
  const bool transforms =
      notes.find("WINOGRAD") != std::string::npos || notes.find("FFT") != std::string::npos;
  return transforms ? 10 : 1;
}

std::vector<Deviation> check_layers(Backend& backend,
                                    const std::function<void(std::span<const Deviation> layer)>& on_checked) {
  struct Check {
    std::string name;
    std::function<void(std::vector<Deviation>&)> run;
  };
  std::vector<Check> checks;
  for (const test::NamedCase& named : test::all_cases())
    checks.push_back({named.name, [&backend, named](std::vector<Deviation>& found) {
                        check_one(backend, named.name, named.value, found);
                      }});
  for (const std::int64_t channels : {8, 5}) {
    for (const bool adds : {false, true})
      checks.push_back({"batch_norm with relu", [&backend, channels, adds](std::vector<Deviation>& found) {
                          check_norm_with_relu(backend, channels, adds, found);
                        }});
  }
  std::vector<Deviation> found;
  bool lost = false;
  for (std::size_t i = 0; i < checks.size() && !lost; ++i) {
    const std::size_t first = found.size();
    try {
      checks[i].run(found);
    } catch (const std::exception& error) {
      found.push_back({checks[i].name, error.what(), std::numeric_limits<double>::infinity()});
      lost = is_lost(backend);
      if (lost)
        found.back().array +=
            "; the GPU is unusable for this process from here on: later layers were not checked";
    }
    if (on_checked) on_checked(std::span<const Deviation>(found).subspan(first));
  }
  return found;
}

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
  const std::int64_t size = sum.size();
  for (std::size_t k = 1; k < parts.size(); ++k)
    backend.add(parts[k].kernel(layer).partial_sums(pass).data(), sum.data(), sum.size());
  for (std::size_t k = 1; k < parts.size(); ++k)
    backend.move({.size = {size}, .from_stride = {1}, .to_stride = {1}}, sum.data(),
                 parts[k].kernel(layer).partial_sums(pass).data());
  for (Part& one : parts) one.kernel(layer).finish(pass);
}

double error_of_part(const std::vector<float>& found, const std::vector<float>& expected) {
  if (found.size() != expected.size()) return std::numeric_limits<double>::infinity();
  double worst = 0, size = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (!std::isfinite(found[i])) return std::numeric_limits<double>::infinity();
    worst = std::max<double>(worst, std::abs(found[i] - expected[i]));
    size = std::max<double>(size, std::abs(expected[i]));
  }
  return size > 0 ? worst / size : worst;
}

void compare(Network& whole, Part& one, std::vector<Deviation>& found) {
  found.push_back(
      {"shared layers", "loss",
       error_of_part({static_cast<float>(one.network->loss())}, {static_cast<float>(whole.loss())})});
  for (std::size_t i = 0; i < whole.model().layers.size(); ++i) {
    const Layer& layer = whole.model().layers[i];
    for (std::size_t k = 0; k < layer.parameters.size(); ++k) {
      const auto expected = extract_part(whole.kernel(i).read_gradient(k), one.part, i, k);
      found.push_back({"shared " + layer.name, "parameter " + std::to_string(k),
                       error_of_part(one.kernel(i).read_gradient(k), expected)});
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
