#include "models/memory.hpp"

#include <algorithm>

#include "models/activations.hpp"

namespace stepcast {
namespace {

constexpr double kSingle = 4;  // B an element
constexpr double kHalf = 2;

double optimizer_copies(MemoryOptions::Optimizer optimizer) {
  switch (optimizer) {
    case MemoryOptions::Optimizer::sgd:
      return 0;
    case MemoryOptions::Optimizer::adam:
      return 2;
    default:
      return 1;
  }
}

}  // namespace

Bytes Memory::total() const {
  return weights + gradients + optimizer_state + activations + error_signals + input + workspace;
}

Memory training_memory(const Model& model, const MemoryOptions& options) {
  const bool mixed = options.precision == MemoryOptions::Precision::mixed;
  const double element = mixed ? kHalf : kSingle;
  const auto trainable = static_cast<double>(trainable_parameters(model));
  const auto all = static_cast<double>(all_parameters(model));
  const double samples = static_cast<double>(options.batch) / options.split;
  Memory memory;
  memory.weights = {all * (mixed ? kHalf + kSingle : kSingle)};
  memory.gradients = {trainable * element};
  memory.optimizer_state = {trainable * kSingle * optimizer_copies(options.optimizer)};
  memory.activations = {samples * element * kept_activations(model, options)};
  memory.error_signals = {samples * element * kept_error_signals(model, options)};
  memory.input = {samples * element * input_elements(model)};
  memory.workspace = options.workspace;
  return memory;
}

bool fits(const Memory& memory, const Device& device, double margin) {
  return (1 + margin) * memory.total() <= device.usable_memory;
}

}  // namespace stepcast
