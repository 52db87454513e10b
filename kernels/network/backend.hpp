#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kernels/network/device_memory.hpp"
#include "models/network/layer.hpp"
#include "models/partition/spatial_shard.hpp"
#include "models/partition/tensor_shard.hpp"
#include "strategies/arithmetic/optimizer.hpp"

namespace stepcast {

/// The shape {batch, sample...}.
inline Shape batched(std::int64_t batch, const Shape& sample) {
  Shape shape{batch};
  shape.insert(shape.end(), sample.begin(), sample.end());
  return shape;
}

/// A batch of activations or gradients in the layout and memory that a backend chose; fp32.
class Tensor {
 public:
  virtual ~Tensor() = default;

  /// {batch, shape of a sample...}
  virtual const Shape& shape() const = 0;
  /// Values in row-major order of `shape()`, whatever the layout.
  virtual std::vector<float> read() const = 0;
  /// @throws std::invalid_argument if the length does not match the shape
  virtual void write(const std::vector<float>& values) = 0;
  /// Copies all values in row-major order to memory that holds `elements()` values.
  virtual void copy_to(float* values) const {
    const std::vector<float> all = read();
    std::copy(all.begin(), all.end(), values);
  }
  /// Copies `elements()` values in row-major order from memory.
  virtual void copy_from(const float* values) { write({values, values + elements()}); }

  std::size_t elements() const {
    std::size_t product = 1;
    for (const std::int64_t size : shape()) product *= size;
    return product;
  }
};

/// The parts of a layer's training step, in the order in which they run. Layers without parameters have no
/// `backward_weights` and `update`.
enum class Pass { forward, backward_data, backward_weights, update };

class LayerKernel;

/// A layer and its place in a network: what a backend needs to build its kernel.
struct LayerSite {
  const Layer* layer = nullptr;
  std::int64_t batch = 1;
  std::vector<Tensor*> inputs;  ///< outputs of earlier layers of the same backend; they outlive the kernel
  std::uint64_t seed = 0;       ///< seed of dropout masks
  std::uint32_t index = 0;      ///< index of the layer in its model, so that no two dropout masks are equal
  double loss_weight = 1;       ///< factor on the mean of a loss and on its gradient
  /// This device's rows, if windows of the layer read rows of other devices (spatial partition); else null.
  const LayerShardRows* rows = nullptr;
  bool separate_border = false;  ///< with `rows`: LayerKernel::run_border has the rows that need halos
  /// Batch norm over several ranks: elements per channel of all ranks together; 0: statistics of this rank
  /// alone.
  std::int64_t statistics_count = 0;
  const LayerShare* share = nullptr;  ///< this rank's part of a layer that ranks share; else null
  /// A batch norm that computes the ReLU after it as well (FusedNorm); its output is that of the ReLU.
  /// If it has a second input, it adds that before the ReLU, and has the gradient of that input too.
  bool with_relu = false;
  /// The batch norm that computes this ReLU or addition; else null. It outlives this kernel.
  LayerKernel* computed_by = nullptr;
};

/// The exchanges of a layer with ranks that have other tokens of the same samples (TokenExchange), before or
/// after its passes. Forward they carry activations, in the backward-data pass error signals.
class TokenTransfer {
 public:
  virtual ~TokenTransfer() = default;

  /// Copies what this rank sends next into the buffer of the collective, in memory of the backend.
  virtual std::span<float> pack(Pass pass) = 0;
  /// Copies what the collective left in the buffer to where the layer, or its neighbours, read it.
  virtual void unpack(Pass pass) = 0;
};

/// One layer with fixed shapes that computes on a backend.
///
/// A step runs forward, backward_data and backward_weights in this order; a later pass uses what an earlier
/// pass reordered. Gradients are overwritten, never added to. If several layers read the output, the first
/// backward pass sums their gradients. If a library computes both gradients in one call (batch norm, layer
/// norm, RNN), that call is backward_data, or backward_weights if the gradient of the input is not needed.
class LayerKernel {
 public:
  virtual ~LayerKernel() = default;

  virtual Tensor& output() = 0;

  /// Stored elements of each parameter. Blocked layouts pad with zeros, so this may exceed the model's
  /// number.
  virtual std::vector<std::size_t> stored_elements() const = 0;
  /// Gives a parameter its memory on the backend, `stored_elements` long and zeroed. `gradient` is null for
  /// running statistics.
  virtual void bind(std::size_t parameter, float* value, float* gradient) = 0;
  /// A parameter's values in the model's row-major order.
  virtual std::vector<float> read_parameter(std::size_t parameter) const = 0;
  virtual void write_parameter(std::size_t parameter, const std::vector<float>& values) = 0;
  virtual std::vector<float> read_gradient(std::size_t parameter) const = 0;

  /// Builds the backward passes; called once, after all layers that read the output have built theirs.
  /// @param output_gradients  gradients of the output, one from each layer that reads it
  /// @param wanted            for each input, whether its gradient is needed
  virtual void connect_backward(const std::vector<Tensor*>& output_gradients,
                                const std::vector<bool>& wanted) = 0;
  /// The gradient of an input; null if it was not wanted.
  virtual Tensor* input_gradient(std::size_t input) = 0;

  /// True if `run(pass)` computes anything. False for `update`, which the backend runs for all layers.
  virtual bool has(Pass pass) const = 0;
  virtual void run(Pass pass) = 0;
  /// Whether every run of a pass starts the same work, so that a recording of it computes the same.
  virtual bool repeats() const { return true; }

  /// Spatially partitioned samples: whether neighbours exchange halos (rows that their windows read) before
  /// this pass of the layer.
  virtual bool has_halo(Pass) const { return false; }
  /// Whether the layer computes, in the backward-data pass, contributions to the gradient of rows of
  /// neighbours, which go back to them after it: pack_halo copies them, and unpack_halo adds those of others.
  virtual bool returns_halo() const { return false; }
  /// Copies a box of rows into a message in memory of the backend: [sample][position][channel]. Rows are
  /// taken from this device's own and, beyond these, from halos that it received.
  virtual void pack_halo(Pass, const std::vector<Rows>& /*box*/, float* /*message*/) {}
  /// Copies a message into the box of rows that it holds; rows that no window reads are left out.
  virtual void unpack_halo(Pass, const std::vector<Rows>& /*box*/, const float* /*message*/) {}
  /// Computes the rows to send, which may be the sum of several gradients, before halos are packed. If it was
  /// not called, the pass does it.
  virtual void prepare_halo(Pass) {}
  /// The two parts of `run` of a layer that was made with LayerSite::separate_border: what needs no rows of
  /// neighbours, and what is left once their halos have arrived. Other layers are all interior.
  virtual void run_interior(Pass pass) { run(pass); }
  virtual void run_border(Pass) {}

  /// The numbers that ranks all-reduce within a pass, in memory of the backend: two numbers per channel of a
  /// batch norm over several ranks, and outputs and input gradients of layers that ranks share. Empty for
  /// other layers and passes.
  virtual std::span<float> partial_sums(Pass) { return {}; }
  /// From now on `run` stops before the all-reduce, and `finish` computes what comes after it. Without this
  /// call `run` takes this rank's numbers for the sum over all ranks.
  virtual void defer_sums() {}
  virtual void finish(Pass) {}

  /// The exchanges of a layer whose tokens ranks divide; null for other layers.
  virtual TokenTransfer* token_transfer() { return nullptr; }

  /// Experts that ranks share (LayerShare::Form::experts): the blocks of rows that an all-to-all exchanges
  /// before a pass, which this call computes; after the pass, those that it exchanges then. `finish` computes
  /// what comes after that. Each block begins with the number of its floats that are sent,
  /// itself included. Empty for other layers.
  virtual std::span<float> exchanged_rows(Pass) { return {}; }

  /// Losses: the values that the output is compared with (class indices for softmax_cross_entropy); null for
  /// other layers.
  virtual Tensor* targets() = 0;
  /// Losses: the mean at the last forward pass, times the loss weight.
  virtual double loss() const = 0;

  /// The algorithms that the library chose for this layer, as text; empty if there is no choice.
  virtual std::string notes() const { return {}; }
};

/// Layers whose passes follow one another, while nothing else reads or writes their parameters. So a backend
/// can convert all weights before the forward pass, and all gradients after the backward pass, in one call.
class LayerGroup {
 public:
  virtual ~LayerGroup() = default;

  /// Elements of each layer that are converted before `forward` or after `backward_weights`.
  virtual std::vector<double> converted(Pass pass) const = 0;
  /// Converts all weights. Until `end_forward` no forward pass of these layers converts its own.
  virtual void begin_forward() = 0;
  virtual void end_forward() = 0;
  /// From now on no backward pass of these layers converts its gradients; `end_backward` converts all.
  virtual void begin_backward() = 0;
  virtual void end_backward() = 0;
};

/// Work of the device that was recorded and can be started again by one call, such as a CUDA graph. It uses
/// the same memory each time.
class RecordedWork {
 public:
  virtual ~RecordedWork() = default;
  virtual void start() = 0;
};

/// A library and the device that it computes on. An abstract class because oneDNN and cuDNN run the same
/// networks.
class Backend {
 public:
  virtual ~Backend() = default;

  virtual std::string library() const = 0;  ///< name and version, such as "oneDNN 2.6.3"
  virtual std::string device() const = 0;   ///< name of the processor or GPU
  /// Whether the backend computes several layers in one kernel: a batch norm computes the ReLU after it
  /// (FusedNorm), and one call updates the parameters of all layers.
  virtual bool fuses() const { return false; }
  /// A group that converts the weights of all layers together. Returns null if layers convert by themselves
  /// or need no conversion.
  /// @param layers  a null entry stands for a layer that computes nothing; the layers must outlive the group
  virtual std::unique_ptr<LayerGroup> make_group(const std::vector<LayerKernel*>& /*layers*/) {
    return nullptr;
  }

  /// Records the work that `enqueue` would start. Null if this backend starts all work singly.
  virtual std::unique_ptr<RecordedWork> record_work(const std::function<void()>& /*enqueue*/) {
    return nullptr;
  }

  virtual std::unique_ptr<Tensor> make_tensor(const Shape& shape) = 0;
  /// A tensor for activations that another network computes, in the layout in which layers here read them
  /// without a conversion.
  virtual std::unique_ptr<Tensor> make_activations(const Shape& shape) { return make_tensor(shape); }
  /// @throws InputError if the library cannot compute this layer
  virtual std::unique_ptr<LayerKernel> make_kernel(const LayerSite& site) = 0;
  /// Zeroed memory of the device.
  virtual std::shared_ptr<float> allocate(std::size_t elements) = 0;
  virtual void update(const Optimizer& optimizer, const UpdateArrays& arrays) = 0;
  /// memory[i] = 0
  virtual void clear(float* memory, std::size_t elements) = 0;
  /// sum[i] += terms[i]
  virtual void add(const float* terms, float* sum, std::size_t elements) = 0;
  /// Copies all values in row-major order from a tensor to memory of `allocate`, as work of the device.
  virtual void copy_out(const Tensor& from, float* to) { from.copy_to(to); }
  /// Copies all values in row-major order from memory of `allocate` to a tensor, as work of the device.
  virtual void copy_in(const float* from, Tensor& to) { to.copy_from(from); }
  /// Copies a box of elements within memory of `allocate`.
  virtual void move(const BoxMove& box, const float* from, float* to) { move_on_host(box, from, to); }
  /// Each further thread of the program calls this before it computes or copies anything.
  virtual void begin_thread() {}
  /// Returns when all work that was started is done.
  virtual void finish() = 0;
  /// The device's memory, if the host cannot access what `allocate` returns; else null.
  virtual DeviceMemory* device_memory() { return nullptr; }
};

/// Number format of matrix products and convolutions. Sums, parameters and the optimizer's state are fp32 in
/// all of them.
enum class GpuPrecision {
  f32,   ///< no tensor cores
  tf32,  ///< fp32 in memory, 10 bits of mantissa inside products
  f16,   ///< activations and copies of weights in fp16; gradients are not scaled
  bf16
};

const char* to_string(GpuPrecision precision);

/// Order of the elements of images. Sequences, vectors and volumes are always row-major.
enum class ImageLayout { nchw, nhwc };

struct GpuOptions {
  int device = 0;  ///< CUDA's number of the GPU
  GpuPrecision precision = GpuPrecision::f32;
  ImageLayout layout = ImageLayout::nchw;
  std::size_t workspace = std::size_t{1}
                          << 30;  ///< limit of the memory that libraries use besides tensors [bytes]
  bool fuses = true;    ///< batch norm computes the ReLU after it, and one kernel updates all parameters
  bool graphs = false;  ///< passes that follow one another are replayed as one CUDA graph
};

/// "cuda:0" -> 0.
/// @throws InputError for anything else
int device_number(const std::string& text);

/// Number of GPUs that CUDA finds; 0 if CUDA is not available.
int gpu_count();

/// @throws InputError if there is no such GPU
std::unique_ptr<Backend> make_cudnn_backend(const GpuOptions& options);

}  // namespace stepcast
