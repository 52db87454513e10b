#include "models/cost/framework_memory.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "models/cost/activation_memory.hpp"
#include "models/cost/cost.hpp"
#include "models/cost/saved_tensors.hpp"

namespace stepcast {
namespace {

// The caching allocator. Source: c10/cuda/CUDACachingAllocator.cpp of pytorch/pytorch: kMinBlockSize,
// kSmallSize, kSmallBuffer, kMinLargeAlloc, kLargeBuffer, kRoundLarge.
constexpr double kBlock = 512;
constexpr double kSmall = 0x1p20, kSmallSegment = 2 * 0x1p20;
constexpr double kMedium = 10 * 0x1p20, kMediumSegment = 20 * 0x1p20;
constexpr double kLargeStep = 2 * 0x1p20;

/// Workspace of cuDNN for a convolution with a window of 3 or more, in bytes of its filters: 56.6 MB beside
/// filters of 9.44 MB. Source: memory events of ResNet-50 on a V100, pytorch/kineto at 041e7ce99f15,
/// tb_plugin/samples/resnet50_num_workers_0.
constexpr double kWorkspaceFilters = 6;

/// Workspace of cuBLAS. Source: aten/src/ATen/cuda/CublasHandlePool.cpp of pytorch/pytorch, default
/// CUBLAS_WORKSPACE_CONFIG :4096:2:16:8.
constexpr double kProducts = (2 * 4096 + 8 * 16) * 1024.0;

double round_up(double bytes, double step) {
  return std::ceil(bytes / step) * step;
}

/// Bytes of live tensors, and what the allocator has reserved for them.
struct Held {
  double activations = 0, error_signals = 0, input = 0, workspace = 0;
  double small = 0, medium = 0, large = 0;  ///< in segments of 2 MiB, of 20 MiB, and of the tensor's own size

  double allocated() const { return activations + error_signals + input + workspace; }

  double reserved() const {
    return std::max(allocated(), round_up(small, kSmallSegment) + round_up(medium, kMediumSegment) + large);
  }

  void add(double Held::*part, double bytes, int sign = 1) {
    const double block = allocated_block({bytes}).value;
    this->*part += sign * block;
    if (block <= kSmall)
      small += sign * block;
    else if (block < kMedium)
      medium += sign * block;
    else
      large += sign * round_up(block, kLargeStep);
  }
};

/// An output, by the layer in whose memory it lies.
struct Buffer {
  double bytes = 0;
  int last_reader = -1;  ///< in the forward pass
  int first_saver = -1;  ///< the layer whose backward pass is the last to read it; -1: not saved
  bool crosses = false;  ///< a segment after its own reads it (recomputation)
};

struct Step {
  const Model& model;
  const MemoryOptions& options;
  double samples = 1;
  std::vector<double> width = {};  ///< bytes of an element of each layer's output
  std::vector<int> owner = {}, segment = {};
  std::vector<SavedTensors> saved = {};
  std::vector<Buffer> buffers = {};
  Held now = {}, peak = {};

  double size(std::size_t layer) const {
    return samples * width[layer] * static_cast<double>(elements(model.layers[layer].output));
  }

  double private_bytes(std::size_t layer) const {
    const SavedTensors& own = saved[layer];
    return samples * (own.elements * width[layer] + own.bytes) + own.fixed;
  }

  bool recomputes() const { return options.recomputation != MemoryOptions::Recomputation::none; }
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
    const auto from = static_cast<std::size_t>(std::max(input, 0));
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
    int& first = step.buffers[static_cast<std::size_t>(buffer)].first_saver;
    if (first < 0) first = static_cast<int>(layer);
  };
  for (std::size_t i = 0; i < count; ++i) {
    const int own = step.owner[i];
    if (own == static_cast<int>(i)) step.buffers[i].bytes = step.size(i);
    if (own >= 0 && step.saved[i].output) save(own, i);
    for (const int input : step.model.layers[i].inputs) {
      const int from = input < 0 ? input : step.owner[static_cast<std::size_t>(input)];
      if (from < 0) continue;
      Buffer& buffer = step.buffers[static_cast<std::size_t>(from)];
      buffer.last_reader = static_cast<int>(i);
      buffer.crosses |= step.segment[i] > step.segment[static_cast<std::size_t>(from)];
      if (step.saved[i].input) save(from, i);
    }
  }
}

void set_segments(Step& step) {
  step.segment.assign(step.model.layers.size(), 0);
  if (!step.recomputes()) return;
  const auto ends = checkpoints(step.model, step.options.recomputation);
  for (std::size_t i = 0, at = 0; i < step.segment.size(); ++i) {
    step.segment[i] = static_cast<int>(at);
    if (at < ends.size() && ends[at] == i) ++at;
  }
}

/// Bytes of an element of a convolution's filters as its kernels read them.
double convolution_width(const Step& step) {
  return step.options.precision == MemoryOptions::Precision::mixed ? kHalfBytes : kFp32Bytes;
}

/// Bytes beside a loss's inputs and their derivative: the derivative of the logarithms of softmax, in fp32,
/// and under autocast the fp32 derivative that becomes fp16.
double loss_bytes(const Step& step, std::size_t layer) {
  const Layer& loss = step.model.layers[layer];
  const bool logarithms = loss.kind == LayerKind::softmax_cross_entropy &&
                          step.options.framework == MemoryOptions::Framework::pytorch;
  if (!logarithms) return 0;
  const double cast = autocast(step.options) ? kFp32Bytes - kHalfBytes : 0;
  return step.samples * (kFp32Bytes + cast) * element_count(loss.input);
}

double workspace_of(const Step& step, const Layer& layer) {
  if (step.options.workspace) return step.options.workspace->value;
  double products = layer.kind == LayerKind::dense || layer.kind == LayerKind::attention ? kProducts : 0;
  if (layer.kind != LayerKind::convolution) return products;
  const auto& kernel = layer.window.kernel;
  if (std::ranges::min(kernel) < 3) return 0;
  for (const ParameterTensor& tensor : layer.parameters)
    products = std::max(products,
                        kWorkspaceFilters * convolution_width(step) * static_cast<double>(tensor.elements()));
  return products;
}

void observe(std::size_t layer, Step& step) {
  const double workspace = workspace_of(step, step.model.layers[layer]);
  const double loss = loss_bytes(step, layer);
  step.now.add(&Held::workspace, workspace);
  step.now.add(&Held::error_signals, loss);
  const auto size = [](const Held& held) { return std::pair(held.reserved(), held.allocated()); };
  if (size(step.now) > size(step.peak)) step.peak = step.now;
  step.now.add(&Held::workspace, workspace, -1);
  step.now.add(&Held::error_signals, loss, -1);
}

/// Adds (or with sign -1 frees) what the layers of a segment have saved and recomputation does not keep.
void hold_segment(int segment, int sign, Step& step) {
  for (std::size_t i = 0; i < step.buffers.size(); ++i) {
    if (step.segment[i] != segment) continue;
    const Buffer& buffer = step.buffers[i];
    if (buffer.first_saver >= 0 && !buffer.crosses) step.now.add(&Held::activations, buffer.bytes, sign);
    step.now.add(&Held::activations, step.private_bytes(i), sign);
  }
}

void walk_forward(Step& step) {
  const auto last = static_cast<int>(step.buffers.size()) - 1;
  std::vector<std::vector<std::size_t>> read_last(step.buffers.size());
  for (std::size_t i = 0; i < step.buffers.size(); ++i) {
    const Buffer& buffer = step.buffers[i];
    if (buffer.bytes > 0 && buffer.first_saver < 0 && buffer.last_reader >= 0)
      read_last[static_cast<std::size_t>(buffer.last_reader)].push_back(i);
  }
  for (int i = 0; i <= last; ++i) {
    const auto at = static_cast<std::size_t>(i);
    step.now.add(&Held::activations, step.buffers[at].bytes);
    step.now.add(&Held::activations, step.private_bytes(at));
    observe(at, step);
    for (const std::size_t freed : read_last[at])
      step.now.add(&Held::activations, step.buffers[freed].bytes, -1);
    if (i < last && step.segment[at] != step.segment[at + 1]) hold_segment(step.segment[at], -1, step);
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
      int& there = of_[static_cast<std::size_t>(input)];
      const int made = passes && of_[layer] >= 0 ? of_[layer] : make(static_cast<std::size_t>(input));
      if (passes && of_[layer] >= 0) ++readers_[static_cast<std::size_t>(made)];
      if (there < 0) {
        there = made;
      } else {  // the sum of two readers' derivatives is a tensor of its own
        const int sum = make(static_cast<std::size_t>(input));
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
    bytes_.push_back(step_.size(layer));
    readers_.push_back(1);
    step_.now.add(&Held::error_signals, bytes_.back());
    return static_cast<int>(bytes_.size()) - 1;
  }

  void release(int signal) {
    const auto at = static_cast<std::size_t>(signal);
    if (--readers_[at] == 0) step_.now.add(&Held::error_signals, bytes_[at], -1);
  }

  Step& step_;
  std::vector<int> of_;        ///< for each layer's output its signal, -1: none
  std::vector<double> bytes_;  ///< of each signal
  std::vector<int> readers_;   ///< layers that still need each signal
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
    if (last_of_segment) hold_segment(step.segment[i], 1, step);
    errors.make_inputs(i, data[i]);
    observe(i, step);
    errors.release_output(i);
    for (const std::size_t freed : freed_by[i])
      step.now.add(&Held::activations, step.buffers[freed].bytes, -1);
    step.now.add(&Held::activations, step.private_bytes(i), -1);
  }
}

}  // namespace

Bytes allocated_block(Bytes tensor) {
  return {round_up(tensor.value, kBlock)};
}

StepMemory peak_of_step(const Model& model, const MemoryOptions& options) {
  const bool mixed = options.precision == MemoryOptions::Precision::mixed;
  Step step{.model = model,
            .options = options,
            .samples = static_cast<double>(options.batch) / options.split,
            .width = output_widths(model, options)};
  share_memory(step);
  set_segments(step);
  set_buffers(step);
  const double element = mixed && !autocast(options) ? kHalfBytes : kFp32Bytes;
  step.now.add(&Held::input, step.samples * element * input_elements(model));
  walk_forward(step);
  const double others = options.in_flight - 1;  // micro-batches whose backward pass has not begun
  const Held kept = step.now;
  walk_backward(step);
  const double allocated = step.peak.allocated();
  return {.activations = {step.peak.activations + others * kept.activations},
          .error_signals = {step.peak.error_signals},
          .input = {step.peak.input * options.in_flight},
          .workspace = {step.peak.workspace},
          .allocator = {step.peak.reserved() - allocated}};
}

}  // namespace stepcast
