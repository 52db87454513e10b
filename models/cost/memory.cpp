#include "models/cost/memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "models/cost/cost.hpp"
#include "models/cost/memory_options.hpp"
#include "models/cost/step_memory.hpp"

namespace stepcast {
namespace {

/// Share of the arrays of a ZeRO stage that one device holds. @param spread  see expert_spread
double share(const MemoryOptions& options, MemoryOptions::Zero stage, double spread) {
  return options.zero >= stage ? spread / options.zero_ways : 1.0;
}

/// Factor on the share of all parameters, because fewer devices have the same experts and partition them.
double expert_spread(const Model& model, const MemoryOptions& options) {
  double experts = 0;
  for (const Layer& layer : model.layers) {
    for (const ParameterTensor& tensor : layer.parameters)
      experts += layer.kind == LayerKind::experts ? tensor.elements() : 0;
  }
  return experts > 0 ? 1 + (options.expert_ways - 1) * experts / all_parameters(model) : 1;
}

double largest_layer(const Model& model) {
  double largest = 0;
  for (const Layer& layer : model.layers) {
    double sum = 0;
    for (const ParameterTensor& tensor : layer.parameters) sum += tensor.elements();
    largest = std::max(largest, sum);
  }
  return largest;
}

void set_parameters(const Model& model, const MemoryOptions& options, Memory& memory) {
  using Zero = MemoryOptions::Zero;
  const bool mixed = options.precision == MemoryOptions::Precision::mixed;
  const double element = mixed ? kHalfBytes : kFp32Bytes;
  const double trainable = trainable_parameters(model);
  const double all = all_parameters(model);
  const double spread = expert_spread(model, options);
  const double state = options.host_optimizer ? 0 : share(options, Zero::optimizer_state, spread);
  const bool cast = mixed && options.zero == Zero::parameters && options.half_parameters;
  const double used = cast ? 0 : share(options, Zero::parameters, spread) * element;
  memory.weights = {all * (used + (mixed ? state * kFp32Bytes : 0))};
  // Autocast's casts of parameters are operators of the graph: the gradients of fp32 parameters are fp32.
  const bool casts = autocast(options) && options.zero == Zero::none;
  const double gradient = casts || options.fp32_gradients ? kFp32Bytes : element;
  memory.gradients = {share(options, Zero::gradients, spread) * trainable * gradient};
  memory.optimizer_state = {state * trainable * kFp32Bytes * optimizer_copies(options.optimizer)};
  if (options.zero == Zero::parameters && options.zero_ways > 1) {
    memory.gathered = {largest_layer(model) * element};
  }
}

/// Sets the memory that a process uses in addition to its parameters, by LBANN's rule.
void set_outputs(const Model& model, const MemoryOptions& options, Memory& memory) {
  const bool mixed = options.precision == MemoryOptions::Precision::mixed;
  const double samples = static_cast<double>(options.batch) / options.split;
  const double sample_bytes = samples * (mixed ? kHalfBytes : kFp32Bytes);
  const double others =
      options.in_flight > 1 ? (options.in_flight - 1) * held_activations(model, options) : 0;
  memory.activations = {sample_bytes * (kept_activations(model, options) + others)};
  memory.error_signals = {sample_bytes * kept_error_signals(model, options)};
  memory.input = {options.in_flight * sample_bytes * input_elements(model)};
  memory.workspace = options.workspace.value_or(Bytes{});
  if (options.swap) {
    const WorkingSet staying = swapped_working_set(model, options);
    const Bytes all = memory.activations;
    memory.activations = {sample_bytes * staying.activations};
    memory.error_signals = {sample_bytes * staying.error_signals};
    memory.swapped = all - memory.activations;
  }
}

/// Sets the same memory by a walk over the step as PyTorch or TensorFlow run it.
void set_step(const Model& model, const MemoryOptions& options, Memory& memory) {
  const StepMemory peak = peak_of_step(model, options);
  memory.activations = peak.activations;
  memory.error_signals = peak.error_signals;
  memory.input = peak.input;
  memory.workspace = peak.workspace;
  memory.allocator = peak.allocator;
  if (options.bucket_copies) memory.buckets = memory.gradients;
}

}  // namespace

Bytes Memory::total() const {
  return weights + gradients + optimizer_state + activations + error_signals + input + workspace + gathered +
         buckets + allocator;
}

Memory training_memory(const Model& model, const MemoryOptions& options) {
  Memory memory;
  set_parameters(model, options, memory);
  const bool swapped_or_lbann = options.framework == MemoryOptions::Framework::lbann || options.swap;
  (swapped_or_lbann ? set_outputs : set_step)(model, options, memory);
  return memory;
}

bool fits(const Memory& memory, const Device& device, double margin) {
  return (1 + margin) * memory.total() <= device.usable_memory;
}

std::string why_not(const Memory& memory, const Device& device, double margin) {
  if (fits(memory, device, margin)) return "";
  const Bytes needed = (1 + margin) * memory.total();
  const auto gigabytes = [](Bytes bytes) { return fmt::format("{:.1f} GB", bytes.value / 1e9); };
  std::string text = fmt::format("needs {} a device, {} usable: {} too much", gigabytes(needed),
                                 gigabytes(device.usable_memory), gigabytes(needed - device.usable_memory));
  std::vector<std::pair<Bytes, const char*>> parts{{memory.activations, "activations"},
                                                   {memory.error_signals, "error signals"},
                                                   {memory.weights, "weights"},
                                                   {memory.gradients, "gradients"},
                                                   {memory.input, "input"},
                                                   {memory.optimizer_state, "optimizer state"},
                                                   {memory.workspace, "workspace"},
                                                   {memory.gathered, "gathered parameters"},
                                                   {memory.buckets, "gradient buckets"},
                                                   {memory.allocator, "allocator"}};
  std::stable_sort(parts.begin(), parts.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  const char* separator = "; ";
  for (const auto& [bytes, name] : parts) {
    if (bytes / memory.total() < 0.01) break;
    text += fmt::format("{}{} {}", separator, name, gigabytes(bytes));
    separator = ", ";
  }
  return text;
}

}  // namespace stepcast
