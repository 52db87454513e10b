#include "models/cost/step_memory.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "models/cost/allocator/caching_allocator.hpp"
#include "models/cost/cost.hpp"
#include "models/cost/memory_options.hpp"

namespace stepcast {
namespace {

/// Bytes of live tensors, and of the segments in which they lie.
struct MemorySnapshot {
  double activations = 0, error_signals = 0, input = 0, workspace = 0;
  double model_states = 0;  ///< not part of allocated()
  Bytes in_use = {};

  double allocated() const { return activations + error_signals + input + workspace; }
};

/// A tensor that is alive.
struct Tensor {
  double MemorySnapshot::*part = nullptr;
  double bytes = 0;
  CachingAllocator::Block block = CachingAllocator::kNoBlock;
};

/// An output, by the layer in whose memory it lies.
struct Buffer {
  double bytes = 0;
  int last_reader = -1;         ///< in the forward pass
  int first_saver = -1;         ///< the layer whose backward pass is the last to read it; -1: not saved
  bool crosses = false;         ///< a segment after its own reads it (recomputation)
  bool output_crosses = false;  ///< the same, of the output as the layer itself wrote it
};

/// Steps that are simulated: the second one finds the segments of the first, where the optimizer's state lies
/// by then, and asks for others in their place, which the third one finds.
constexpr int kSteps = 3;

struct Step {
  const Model& model;
  const MemoryOptions& options;
  double samples = 1;
  std::vector<double> width = {};  ///< bytes of an element of each layer's output
  std::vector<int> owner = {}, segment = {};
  std::vector<RecomputedLayer> again = {};  ///< empty: nothing is computed again
  std::vector<SavedTensors> saved = {};
  std::vector<Buffer> buffers = {};
  std::vector<Tensor> outputs = {};                    ///< of each layer
  std::vector<Tensor> kept = {};                       ///< of each layer: the share of its output that stays
  std::vector<std::vector<Tensor>> private_ones = {};  ///< of each layer: what only it saves
  CachingAllocator allocator = {};
  std::optional<ModelStates> model_states = {};
  MemorySnapshot now = {}, peak = {};
  Bytes most_allocated = {};

  Tensor allocate(double MemorySnapshot::*part, double bytes) {
    Tensor tensor{part, allocated_block({bytes}).value, allocator.allocate({bytes})};
    now.*part += tensor.bytes;
    return tensor;
  }
  void free(Tensor& tensor) {
    if (tensor.part != nullptr) now.*tensor.part -= tensor.bytes;
    allocator.free(tensor.block);
    tensor = {};
  }

  double size(std::size_t layer) const {
    return samples * width[layer] * elements(model.layers[layer].output);
  }

  void allocate_private(std::size_t layer) {
    const SavedTensors& own = saved[layer];
    std::vector<Tensor>& tensors = private_ones[layer];
    for (const double count : own.elements)
      tensors.push_back(allocate(&MemorySnapshot::activations, samples * count * width[layer]));
    for (const double bytes : own.bytes)
      tensors.push_back(allocate(&MemorySnapshot::activations, samples * bytes));
    for (const double bytes : own.fixed) tensors.push_back(allocate(&MemorySnapshot::activations, bytes));
  }
  void free_private(std::size_t layer) {
    for (Tensor& tensor : private_ones[layer]) free(tensor);
    private_ones[layer].clear();
  }

  bool recomputes() const { return !again.empty(); }
};

bool overwrites(LayerKind kind) {
  return kind == LayerKind::relu || kind == LayerKind::leaky_relu || kind == LayerKind::elu ||
         kind == LayerKind::add;
}

/// Sets which layers share memory: reshapes are views, and with activations in place ReLU and additions
/// overwrite an input that nothing else reads or has saved.
void share_memory(Step& step) {
  const bool in_place = step.options.activations == MemoryOptions::Activations::in_place;
  const std::vector<int> readers = consumers(step.model);
  std::vector<bool> output_saved;
  for (std::size_t i = 0; i < step.model.layers.size(); ++i) {
    const Layer& layer = step.model.layers[i];
    const int input = layer.inputs.front();
    const std::size_t from = std::max(input, 0);
    const bool free = input >= 0 && readers[from] == 1 && !output_saved[from];
    const bool in = in_place && free && overwrites(layer.kind);
    const bool shared = in || layer.kind == LayerKind::reshape;
    SavedTensors saved = saved_tensors(layer, step.options, in);
    if (autocast(step.options)) save_casts(layer, input < 0 ? kFp32Bytes : step.width[from], saved);
    step.saved.push_back(saved);
    step.owner.push_back(!shared ? static_cast<int>(i) : input < 0 ? input : step.owner[from]);
    output_saved.push_back(step.saved.back().output || (shared && input >= 0 && output_saved[from]));
  }
}

void set_buffers(Step& step) {
  const std::size_t count = step.model.layers.size();
  step.buffers.resize(count);
  const auto save = [&](int buffer, std::size_t layer) {
    int& first = step.buffers[buffer].first_saver;
    if (first < 0) first = layer;
  };
  for (std::size_t i = 0; i < count; ++i) {
    const int own = step.owner[i];
    if (std::cmp_equal(own, i)) step.buffers[i].bytes = step.size(i);
    if (own >= 0 && step.saved[i].output) save(own, i);
    for (const int input : step.model.layers[i].inputs) {
      const int from = input < 0 ? input : step.owner[input];
      if (from < 0) continue;
      Buffer& buffer = step.buffers[from];
      buffer.last_reader = i;
      buffer.crosses |= step.segment[i] > step.segment[from];
      step.buffers[input].output_crosses |= step.segment[i] > step.segment[input];
      if (step.saved[i].input) save(from, i);
    }
  }
}

void set_segments(Step& step) {
  step.segment.assign(step.model.layers.size(), 0);
  step.again = recomputed_layers(step.model, step.options);
  for (std::size_t i = 0; i < step.again.size(); ++i) step.segment[i] = step.again[i].segment;
}

/// Bytes of the scores of eager attention before their softmax or of their derivatives, of which each
/// operator makes one tensor of another; fp32 also under autocast.
double scores_in_passing(const Step& step, const Layer& layer) {
  const bool eager = step.options.attention == MemoryOptions::Attention::eager || layer.position_bias >= 0;
  return layer.kind == LayerKind::attention && eager ? step.samples * kFp32Bytes * internal_elements(layer)
                                                     : 0;
}

void take_snapshot(Step& step) {
  step.now.in_use = step.allocator.in_use();
  step.now.model_states = step.model_states->bytes().value;
  const auto size = [](const MemorySnapshot& one) { return std::pair(one.in_use, one.allocated()); };
  if (size(step.now) > size(step.peak)) step.peak = step.now;
  step.most_allocated = std::max(step.most_allocated, Bytes{step.now.allocated()});
}

void observe(std::size_t layer, Step& step) {
  const double scores = scores_in_passing(step, step.model.layers[layer]);
  Tensor before = step.allocate(&MemorySnapshot::workspace, scores),
         after = step.allocate(&MemorySnapshot::workspace, scores);
  Tensor workspace = step.allocate(&MemorySnapshot::workspace,
                                   kernel_workspace(step.model.layers[layer], step.options, step.samples));
  take_snapshot(step);
  step.free(workspace);
  step.free(before);
  step.free(after);
}

bool takes_logarithms(std::size_t layer, const Step& step) {
  return step.model.layers[layer].kind == LayerKind::softmax_cross_entropy &&
         step.options.framework == MemoryOptions::Framework::pytorch &&
         step.options.cross_entropy != KernelChoice::CrossEntropy::fused;
}

double logit_count(std::size_t layer, const Step& step) {
  return step.samples * element_count(step.model.layers[layer].input);
}

/// The fp32 logits of which a loss computes the logarithms of softmax, if the program casts them.
Tensor cast_logits(std::size_t layer, Step& step) {
  const MemoryOptions& options = step.options;
  const bool casts = autocast(options) && options.fp32_logits && !options.softmax_input;
  if (!casts || !takes_logarithms(layer, step)) return {};
  return step.allocate(&MemorySnapshot::activations, kFp32Bytes * logit_count(layer, step));
}

/// Runs the backward pass of softmax with cross entropy up to the derivative of the logits. It computes the
/// fp32 derivative of the logarithms. Under autocast this becomes fp16, where the logarithms are, or that of
/// fp32 logits. With a divided vocabulary two more arrays are alive
/// (torch/distributed/tensor/parallel/loss.py: zeros, exponentials, sum). @returns the last of these
/// derivatives, which is freed after the pass
Tensor derivative_of_logarithms(std::size_t layer, Step& step) {
  if (!takes_logarithms(layer, step)) return {};
  const double logits = logit_count(layer, step);
  Tensor first = step.allocate(&MemorySnapshot::error_signals, kFp32Bytes * logits);
  Tensor others = step.allocate(&MemorySnapshot::error_signals,
                                step.options.divided_vocabulary ? 2 * kFp32Bytes * logits : 0);
  take_snapshot(step);
  step.free(others);
  if (!autocast(step.options)) return first;
  const bool single = step.options.fp32_logits;
  Tensor& fp32_logarithms = step.private_ones[layer].back();
  if (!single) step.free(fp32_logarithms);
  const Tensor next =
      step.allocate(&MemorySnapshot::error_signals, (single ? kFp32Bytes : kHalfBytes) * logits);
  take_snapshot(step);
  if (single) step.free(fp32_logarithms);
  step.free(first);
  return next;
}

enum class Buffers { allocate, free };

/// Allocates or frees the tensors that the layers of a segment have saved and that recomputation does not
/// keep.
void change_segment(int segment, Buffers what, Step& step) {
  for (std::size_t i = 0; i < step.buffers.size(); ++i) {
    if (step.segment[i] != segment || step.again.empty() || !step.again[i].checkpointed) continue;
    const Buffer& buffer = step.buffers[i];
    const RecomputedLayer& layer = step.again[i];
    const bool saved = buffer.first_saver >= 0 && !buffer.crosses;
    const bool recomputed = saved && layer.kept < 1;
    const bool keeps = layer.kept > 0 && !buffer.output_crosses && !(saved && layer.kept >= 1);
    if (what == Buffers::free) {
      if (recomputed) step.free(step.outputs[i]);
      if (keeps) step.kept[i] = step.allocate(&MemorySnapshot::activations, layer.kept * step.size(i));
      if (!layer.keeps_inside) step.free_private(i);
    } else {
      step.free(step.kept[i]);
      if (recomputed) step.outputs[i] = step.allocate(&MemorySnapshot::activations, buffer.bytes);
      if (!layer.keeps_inside) step.allocate_private(i);
    }
  }
}

/// Bytes of activations of a micro-batch whose backward pass has not begun, after its forward pass.
double held_between_passes(Step& step) {
  if (!step.recomputes() || step.options.in_flight == 1) return step.now.activations;
  change_segment(step.segment.back(), Buffers::free, step);
  const double held = step.now.activations;
  change_segment(step.segment.back(), Buffers::allocate, step);
  return held;
}

void walk_forward(Step& step) {
  const int last = step.buffers.size() - 1;
  std::vector<std::vector<std::size_t>> read_last(step.buffers.size());
  for (std::size_t i = 0; i < step.buffers.size(); ++i) {
    const Buffer& buffer = step.buffers[i];
    const bool kept = buffer.first_saver >= 0 || (step.recomputes() && buffer.crosses);
    if (buffer.bytes > 0 && !kept && buffer.last_reader >= 0) read_last[buffer.last_reader].push_back(i);
  }
  for (int i = 0; i <= last; ++i) {
    step.outputs[i] = step.allocate(&MemorySnapshot::activations, step.buffers[i].bytes);
    step.model_states->run_forward(i);
    Tensor cast = cast_logits(i, step);
    step.allocate_private(i);
    observe(i, step);
    step.free(cast);
    for (const std::size_t freed : read_last[i]) step.free(step.outputs[freed]);
    if (i < last && step.segment[i] != step.segment[i + 1])
      change_segment(step.segment[i], Buffers::free, step);
  }
}

/// Derivatives of the loss that are alive, by the layer whose output they belong to.
class ErrorSignals {
 public:
  explicit ErrorSignals(Step& step) : step_(step), of_(step.buffers.size(), -1) {}

  /// Runs the backward pass of a layer up to the moment at which all its results exist.
  void make_inputs(std::size_t layer, bool data) {
    const Layer& own = step_.model.layers[layer];
    const bool passes = own.kind == LayerKind::add || own.kind == LayerKind::reshape;
    for (const int input : own.inputs) {
      if (!data || input < 0) continue;
      int& there = of_[input];
      const int made = passes && of_[layer] >= 0 ? of_[layer] : make(input);
      if (passes && of_[layer] >= 0) ++readers_[made];
      if (there < 0) {
        there = made;
      } else {  // the sum of two readers' derivatives is a tensor of its own
        const int sum = make(input);
        observe(layer, step_);
        release(made);
        release(there);
        there = sum;
      }
    }
  }

  void release_output(std::size_t layer) {
    if (of_[layer] >= 0) release(of_[layer]);
    of_[layer] = -1;
  }

 private:
  int make(std::size_t layer) {
    signals_.push_back(step_.allocate(&MemorySnapshot::error_signals, step_.size(layer)));
    readers_.push_back(1);
    return signals_.size() - 1;
  }

  void release(int signal) {
    if (--readers_[signal] == 0) step_.free(signals_[signal]);
  }

  Step& step_;
  std::vector<int> of_;          ///< for each layer's output its signal, -1: none
  std::vector<Tensor> signals_;  ///< each derivative
  std::vector<int> readers_;     ///< layers that still need each signal
};

void walk_backward(Step& step) {
  const std::vector<bool> data = backward_data_needed(step.model);
  std::vector<std::vector<std::size_t>> freed_by(step.buffers.size());
  for (std::size_t i = 0; i < step.buffers.size(); ++i) {
    const Buffer& buffer = step.buffers[i];
    const bool kept = step.recomputes() && buffer.crosses;
    if (kept || buffer.first_saver >= 0)
      freed_by[kept ? i : static_cast<std::size_t>(buffer.first_saver)].push_back(i);
  }
  ErrorSignals errors(step);
  for (std::size_t i = step.buffers.size(); i-- > 0;) {
    const bool last_of_segment = i + 1 < step.buffers.size() && step.segment[i] != step.segment[i + 1];
    if (last_of_segment) change_segment(step.segment[i], Buffers::allocate, step);
    Tensor passing = derivative_of_logarithms(i, step);
    errors.make_inputs(i, data[i]);
    step.model_states->run_backward(i);
    observe(i, step);
    step.free(passing);
    errors.release_output(i);
    for (const std::size_t freed : freed_by[i]) step.free(step.outputs[freed]);
    step.free_private(i);
  }
  for (Tensor& loss : step.outputs) step.free(loss);
}

/// One micro-batch is held whole, the others in flight as recomputation leaves them.
StepMemory peak_with_kept_last(const Model& model, MemoryOptions options) {
  options.keeps_last = false;
  const double held = peak_of_step(model, options).saved.value;
  options.recomputed.clear();
  options.recomputation = MemoryOptions::Recomputation::none;
  const int others = std::exchange(options.in_flight, 1) - 1;
  StepMemory peak = peak_of_step(model, options);
  peak.activations = {peak.activations.value + others * held};
  peak.input = (others + 1) * peak.input;
  return peak;
}

}  // namespace

StepMemory peak_of_step(const Model& model, const MemoryOptions& options) {
  if (options.keeps_last) return peak_with_kept_last(model, options);
  const bool mixed = options.precision == MemoryOptions::Precision::mixed;
  Step step{.model = model,
            .options = options,
            .samples = static_cast<double>(options.batch) / options.split,
            .width = output_widths(model, options)};
  share_memory(step);
  set_segments(step);
  set_buffers(step);
  step.outputs.resize(model.layers.size());
  step.kept.resize(model.layers.size());
  step.private_ones.resize(model.layers.size());
  step.model_states.emplace(model, options, step.allocator);
  const double element = mixed && !autocast(options) ? kHalfBytes : kFp32Bytes;
  Tensor input = step.allocate(&MemorySnapshot::input, step.samples * element * input_elements(model));
  double kept = 0;  // activations of a micro-batch whose backward pass has not begun
  for (int i = 0; i < kSteps; ++i) {
    walk_forward(step);
    kept = held_between_passes(step);
    walk_backward(step);
    step.model_states->end_step();
  }
  step.free(input);
  const MemorySnapshot& peak = step.peak;
  return {.activations = {peak.activations + (options.in_flight - 1) * kept},
          .error_signals = {peak.error_signals},
          .input = {peak.input * options.in_flight},
          .workspace = {peak.workspace},
          .allocator = peak.in_use - Bytes{peak.allocated() + peak.model_states},
          .cached = step.allocator.reserved() - peak.in_use,
          .most_allocated = step.most_allocated,
          .saved = {kept}};
}

}  // namespace stepcast
