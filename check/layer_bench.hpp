#pragma once

#include <memory>
#include <vector>

#include "check/cases.hpp"
#include "kernels/network/backend.hpp"

namespace stepcast::test {

constexpr std::uint64_t kBenchSeed = 3;  ///< of the dropout masks

/// One layer on a backend, with the memory that a network would give it.
struct LayerBench {
  LayerBench(Backend& backend, const Case& c, double loss_weight = 1, bool with_relu = false) {
    Shape shape{c.batch};
    shape.insert(shape.end(), c.layer.input.begin(), c.layer.input.end());
    LayerSite site{.layer = &c.layer,
                   .batch = c.batch,
                   .inputs = {},
                   .seed = kBenchSeed,
                   .index = 0,
                   .loss_weight = loss_weight};
    site.with_relu = with_relu;
    for (const Array& input : c.inputs) {
      inputs.push_back(backend.make_tensor(shape));
      inputs.back()->write(as_floats(input));
      site.inputs.push_back(inputs.back().get());
    }
    kernel = backend.make_kernel(site);
    const std::vector<std::size_t> stored = kernel->stored_elements();
    for (std::size_t k = 0; k < stored.size(); ++k) {
      memory.push_back(backend.allocate(stored[k]));
      memory.push_back(backend.allocate(stored[k]));
      kernel->bind(k, memory[2 * k].get(), memory[2 * k + 1].get());
      kernel->write_parameter(k, as_floats(c.parameters[k]));
    }
    if (kernel->targets() != nullptr) kernel->targets()->write(as_floats(c.targets));
  }

  void connect(Backend& backend, const std::vector<Array>& output_gradients) {
    std::vector<Tensor*> pointers;
    for (const Array& gradient : output_gradients) {
      gradients.push_back(backend.make_tensor(kernel->output().shape()));
      gradients.back()->write(as_floats(gradient));
      pointers.push_back(gradients.back().get());
    }
    kernel->connect_backward(pointers, std::vector<bool>(inputs.size(), true));
  }

  std::vector<std::unique_ptr<Tensor>> inputs, gradients;
  std::vector<std::shared_ptr<float>> memory;
  std::unique_ptr<LayerKernel> kernel;
};

}  // namespace stepcast::test
