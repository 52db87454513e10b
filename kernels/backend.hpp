#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kernels/box_move.hpp"
#include "kernels/device_memory.hpp"
#include "kernels/tensor.hpp"
#include "models/device_part.hpp"
#include "models/layer.hpp"
#include "models/shared_part.hpp"
#include "strategies/arithmetic/optimizer.hpp"

namespace stepcast {

/// The parts of a training step of one layer, in the order in which they run.
enum class Pass { forward, backward_data, backward_weights, update };

/// Where a layer stands in a network.
struct LayerSite {
  const Layer* layer = nullptr;
  std::int64_t batch = 1;
  std::vector<Tensor*> inputs;    ///< outputs of earlier layers of the same backend; they outlive the kernel
  std::uint64_t seed = 0;         ///< of dropout's masks
  std::uint32_t index = 0;        ///< of the layer in its model, so that no two masks are the same
  double loss_weight = 1;         ///< losses: factor on the mean and its gradient
  const LayerCut* cut = nullptr;  ///< where windows cross the cut of a sample: its rows; else null
  std::int64_t statistics_count = 0;  ///< batch norm over several ranks: elements a channel; 0: its own alone
  const LayerShare* share = nullptr;  ///< of a layer that ranks share; else null
};

/// One layer, built for fixed shapes, that computes on a backend.
///
/// A step runs forward, backward_data and backward_weights in this order; what an earlier pass rearranged, a
/// later one uses again. Gradients are overwritten, never added to. The sum over several consumers of the
/// output belongs to the first backward pass. Where a library computes both gradients in one call (batch
/// norm, layer norm, RNN), that call is backward_data, or backward_weights if nobody needs the gradient of
/// the input.
class LayerKernel {
 public:
  virtual ~LayerKernel() = default;

  virtual Tensor& output() = 0;

  /// Elements of each parameter as stored: at least those of the model, as blocked layouts pad with zeros.
  virtual std::vector<std::size_t> stored_elements() const = 0;
  /// Memory of the backend, `stored_elements` long and zeroed; `gradient` is null for running statistics.
  virtual void bind(std::size_t parameter, float* value, float* gradient) = 0;
  /// In the model's row-major order.
  virtual std::vector<float> read_parameter(std::size_t parameter) const = 0;
  virtual void write_parameter(std::size_t parameter, const std::vector<float>& values) = 0;
  virtual std::vector<float> read_gradient(std::size_t parameter) const = 0;

  /// Builds the backward passes, once, after all consumers' own. `output_gradients` come from the consumers;
  /// `wanted` says which inputs need a gradient.
  virtual void connect_backward(const std::vector<Tensor*>& output_gradients,
                                const std::vector<bool>& wanted) = 0;
  /// Null where none was wanted.
  virtual Tensor* input_gradient(std::size_t input) = 0;

  /// False for `update`, which is the backend's, and where there is nothing to do.
  virtual bool has(Pass pass) const = 0;
  virtual void run(Pass pass) = 0;

  /// Layers of a cut sample whose windows read rows of neighbours: whether they exchange some before a pass.
  virtual bool has_halo(Pass) const { return false; }
  /// Copies a box of rows into, or from, a message in memory of the backend: [sample][position][channel].
  /// What is packed is taken from the own rows and, beyond them, from what came; what is not read is left
  /// out.
  virtual void pack_halo(Pass, const std::vector<Rows>& /*box*/, float* /*message*/) {}
  virtual void unpack_halo(Pass, const std::vector<Rows>& /*box*/, const float* /*message*/) {}
  /// Before that exchange: works out what is sent, where several layers' error signals make it up. A pass
  /// that was not prepared does it itself.
  virtual void prepare_halo(Pass) {}
  /// What ranks sum within a pass, in memory of the backend: two numbers a channel of a batch norm over
  /// several of them, outputs and error signals of layers that they share. Once `couple` was called, `run`
  /// ends before the sum and `finish` does what comes after it; until then `run` takes its own for all. Empty
  /// for other layers and passes.
  virtual std::span<float> summed(Pass) { return {}; }
  virtual void couple() {}
  virtual void finish(Pass) {}

  /// Losses: what the output is compared with (class indices for softmax_cross_entropy); null for other
  /// layers.
  virtual Tensor* targets() = 0;
  /// Losses: mean of the last forward pass.
  virtual double loss() const = 0;

  /// What the library chose for this layer, in words; empty where there is nothing to choose.
  virtual std::string notes() const { return {}; }
};

/// A library with its device. An abstract class because oneDNN and cuDNN serve the same network at run time.
class Backend {
 public:
  virtual ~Backend() = default;

  virtual std::string library() const = 0;  ///< name and version, such as "oneDNN 2.6.3"
  virtual std::string device() const = 0;   ///< what it computes on, in words

  virtual std::unique_ptr<Tensor> make_tensor(const Shape& shape) = 0;
  /// For what layers of another network make, in the layout in which they leave it: whoever reads it need not
  /// change that first.
  virtual std::unique_ptr<Tensor> make_activations(const Shape& shape) { return make_tensor(shape); }
  /// @throws InputError if the library cannot do this layer
  virtual std::unique_ptr<LayerKernel> make_kernel(const LayerSite& site) = 0;
  /// Zeroed memory of the device.
  virtual std::shared_ptr<float> allocate(std::size_t elements) = 0;
  virtual void update(const Optimizer& optimizer, const UpdateArrays& arrays) = 0;
  /// memory[i] = 0
  virtual void clear(float* memory, std::size_t elements) = 0;
  /// sum[i] += terms[i]
  virtual void add(const float* terms, float* sum, std::size_t elements) = 0;
  /// All values in row-major order, between a tensor and memory of `allocate`. Work like any other.
  virtual void copy_out(const Tensor& from, float* to) { from.copy_to(to); }
  virtual void copy_in(const float* from, Tensor& to) { to.copy_from(from); }
  /// A box of elements between two places of such memory.
  virtual void move(const BoxMove& box, const float* from, float* to) { move_on_host(box, from, to); }
  /// To be called by a thread beside the program's before it computes or copies anything.
  virtual void begin_thread() {}
  /// Returns when everything that was started is done.
  virtual void finish() = 0;
  /// Where `allocate` takes memory from that the host cannot touch; null: it can.
  virtual DeviceMemory* device_memory() { return nullptr; }
};

/// The CPU backend.
std::unique_ptr<Backend> make_onednn_backend();

}  // namespace stepcast
