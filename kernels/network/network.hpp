#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "core/random.hpp"
#include "kernels/network/backend.hpp"
#include "models/network/model.hpp"

namespace stepcast {

/// Layers that a batch norm's kernels can compute with it: a ReLU, and before it the addition of another
/// layer's output. Nothing else reads the output of the norm or of the addition, so neither is stored.
struct FusedNorm {
  std::size_t norm = 0;
  int add = -1;    ///< the addition; -1: the ReLU reads the norm
  int added = -1;  ///< the layer before the norm whose output is added; only with `add`
  std::size_t relu = 0;
};

/// All such groups of a model. A norm without trainable parameters is in none, because layers before which
/// nothing trains have no backward pass.
std::vector<FusedNorm> fused_norms(const Model& model);

class Network;

/// The part of a model that one network computes.
///
/// Some edges of the graph of layers may come from layers that other networks compute, wholly or in part. A
/// layer that reads across such an edge gets its input from outside (`boundary_input`), and the gradient of
/// that input goes back
/// (`add_input_gradient`). A layer whose output is read by another network gets the gradient of its output
/// from outside (`boundary_output_gradient`).
struct PartOptions {
  std::size_t first = 0;  ///< this network computes layers [first, last) of the model
  std::size_t last = std::numeric_limits<std::size_t>::max();
  /// Spatial partition: the first layer that works on whole samples; edges into it and later layers from
  /// earlier ones come from outside, because samples are redistributed there. 0: there is no such layer.
  std::size_t whole_from = 0;
  std::int64_t whole_batch = 1;                 ///< samples of the layers from `whole_from` on
  const SpatialShard* spatial_shard = nullptr;  ///< the shard whose model this is; it outlives the network
  const SharedPart* tensor_shard = nullptr;     ///< the shard whose model this is; it outlives the network
  /// With `spatial_shard`: replicas whose samples the statistics of batch norm cover; 0: this rank's samples
  /// only.
  int statistics_replicas = 0;
  bool accumulate = false;  ///< gradients of several batches add up until the update
  double loss_weight =
      1;  ///< factor on losses and their gradients: this batch's share of a larger mini-batch
  /// Another network with the same part and optimizer, whose parameters, gradients and optimizer state this
  /// network uses. It outlives this one.
  Network* parameters_of = nullptr;
};

struct NetworkOptions {
  std::int64_t batch = 1;
  std::uint64_t seed = 1;       ///< seed of the initial parameters, equal on all workers
  std::uint64_t data_seed = 1;  ///< seed of synthetic data and dropout, different on each worker
  Optimizer optimizer{};
  PartOptions part{};
};

/// One trainable array in memory, padding included. All ranks on equal processors have the same layout, so
/// values and gradients can be averaged without a conversion.
struct ParameterView {
  float* value = nullptr;
  float* gradient = nullptr;
  std::size_t elements = 0;
};

class Network;

/// Callbacks for what ranks exchange within one step.
struct StepExchange {
  /// All-reduces `LayerKernel::partial_sums` within a pass; may be empty.
  std::function<void(std::span<float>)> within_pass = {};
  /// Called before each pass of a layer of a shard but its update, to exchange what the pass reads of other
  /// ranks; may be empty.
  std::function<void(Network&, std::size_t layer, Pass pass)> before_pass = {};
  /// Exchanges gradients between the backward pass and the update; may be empty.
  std::function<void(Network&)> before_update = {};
};

/// A model on a backend, which trains on one batch of synthetic data, pass by pass or in whole steps.
///
/// All trainable arrays lie in one block of memory in the model's order and their gradients in another, so
/// that buckets over several layers are contiguous. Activations and their gradients have memory of their own
/// (out of place). The output of a layer that no layer reads and that is no loss gets a constant random
/// gradient, as from a loss outside; so does an output that another network reads, until a gradient is
/// written.
class Network {
 public:
  /// @throws InputError if the backend cannot compute a layer, std::bad_alloc
  Network(Backend& backend, const Model& model, const NetworkOptions& options);

  /// Called after each pass with the layer's index.
  using Observer = std::function<void(std::size_t layer, Pass pass)>;

  /// The layer index that an observer gets after a call that works for all layers.
  static constexpr std::size_t kAllLayers = std::numeric_limits<std::size_t>::max();

  /// Runs forward of all layers, then backward_data and backward_weights of all layers from the last to the
  /// first, then update of all layers.
  void step(const Observer& observer = {}, const StepExchange& exchange = {});

  bool has(std::size_t layer, Pass pass) const;
  void run(std::size_t layer, Pass pass);
  /// Runs the passes of layers [first, last) that the network has. Nothing else may use their parameters
  /// meanwhile, because the backend may convert weights before, and gradients after, in one call for all.
  /// Without an observer the backend may record the passes of a whole part or replica in their second run,
  /// and start the recording from then on.
  void run_forward(std::size_t first, std::size_t last, const Observer& after = {});
  void run_backward(std::size_t first, std::size_t last, const Observer& after = {});
  /// Whether some passes are started as a recording.
  bool has_recordings() const;
  /// Elements of each layer in the call that works for all layers in this pass.
  std::vector<double> elements_for_all(Pass pass);
  /// Counts steps for the optimizer; `step` calls it before the first update.
  void begin_update() { ++step_; }
  /// Sets the optimizer's learning rate and the factor on gradients (1 / N for sums of N gradients).
  void set_rate(double learning_rate, double gradient_scale) {
    options_.optimizer.learning_rate = learning_rate;
    gradient_scale_ = gradient_scale;
  }
  /// Runs the optimizer on elements [begin, end) of all parameters with any gradient of that length.
  void update(std::size_t begin, std::size_t end, const float* gradient);
  /// Runs the update of layers [first, last): on a backend that fuses in one call for all of them.
  void update_layers(std::size_t first, std::size_t last);
  /// Restores the initial parameters and optimizer state; input and targets stay.
  void reset();

  /// Writes the input and all targets, each value a pure function of the seed and its position.
  void fill_with_synthetic_data(std::uint64_t seed);

  /// Sum of all losses at the last forward pass.
  double loss() const;

  const Model& model() const { return model_; }
  /// This network's part of layers that ranks share; null if it holds all parameters of its model.
  const SharedPart* shared_part() const { return options_.part.tensor_shard; }
  Backend& backend() const { return backend_; }
  Tensor& input() { return *input_; }
  bool contains(std::size_t layer) const { return kernels_.at(layer) != nullptr; }
  LayerKernel& kernel(std::size_t layer) { return *kernels_.at(layer); }

  /// All trainable arrays of the network as one, including the zeros that align them.
  const ParameterView& all_parameters() const { return all_; }
  /// Trainable arrays of a layer, in order.
  const std::vector<ParameterView>& parameters(std::size_t layer) const { return views_.at(layer); }

  /// The input that comes from layer `source` of another network (-1: the model's input); null if no layer
  /// here reads it.
  Tensor* boundary_input(int source);
  /// Writes the gradient of a boundary input, summed over its readers here (zeros without one), in row-major
  /// order.
  void write_input_gradient(int source, std::span<float> sum) const;
  /// Adds the gradient of a boundary input to `sum` in memory of the backend, as work of the device.
  /// @param scratch  memory for one such gradient
  void add_input_gradient(int source, float* sum, float* scratch) const;
  /// The gradient, from outside, of a layer's output; null if no other network reads that output.
  Tensor* boundary_output_gradient(std::size_t layer);

 private:
  struct Range {
    std::size_t begin = 0, end = 0;  ///< in the memory of all parameters [elements]
  };
  /// Layers [first, last) in one direction.
  struct PassRange {
    Pass pass;  ///< forward, or backward_data for both backward passes
    std::size_t first, last;
    auto operator<=>(const PassRange&) const = default;
  };
  struct Recording {
    int runs = 0;  ///< 0, 1, or 2 for 2 and more
    std::unique_ptr<RecordedWork> work;
  };

  LayerSite site_of(std::size_t layer);
  void add_fusion(std::size_t layer, LayerSite& site);
  bool in_part(std::size_t layer) const { return layer >= options_.part.first && layer < options_.part.last; }
  /// True if the edge from `source` to `reader` comes from another network.
  bool crosses_boundary(std::size_t reader, int source) const;
  /// The gradients of a boundary input, one from each reader here.
  std::vector<const Tensor*> input_gradients_of(int source) const;
  /// The tensor that `reader` reads from layer `from`.
  Tensor* input_from(std::size_t reader, int from);
  void fill_parameters();
  void make_kernels();
  void bind_parameters();
  void bind_layer(std::size_t layer);
  void connect();
  /// The gradients of a layer's output, one from each reader.
  std::vector<Tensor*> output_gradients_of(std::size_t layer);
  /// The layers of a range that their backend converts together; null if it does not.
  LayerGroup* group_of(std::size_t first, std::size_t last);
  void run_range(const PassRange& range, const Observer& after);
  void enqueue_forward(std::size_t first, std::size_t last, const Observer& after);
  void enqueue_backward(std::size_t first, std::size_t last, const Observer& after);
  /// Whether a recording of these passes computes the same in every step.
  bool repeats(const PassRange& range) const;
  void accumulate(Range range);
  void update_range(Range range);

  Backend& backend_;
  Model model_;
  NetworkOptions options_;
  std::unique_ptr<Tensor> input_;
  std::map<int, std::unique_ptr<Tensor>> boundary_inputs_;
  std::vector<std::unique_ptr<LayerKernel>> kernels_;  ///< null for layers outside the part
  std::vector<FusedNorm> fused_;                       ///< groups whose layers run in one kernel
  std::map<std::pair<std::size_t, std::size_t>, std::unique_ptr<LayerGroup>> groups_;  ///< by range of layers
  std::map<PassRange, Recording> recordings_;
  std::function<void(Network&, std::size_t layer, Pass pass)> before_pass_;  ///< of the present step
  std::map<std::size_t, std::unique_ptr<Tensor>> boundary_output_gradients_;
  std::vector<bool> trains_;  ///< whether a layer has trainable arrays or comes after one
  std::vector<std::vector<ParameterView>> views_;
  std::vector<Range> ranges_;  ///< of each layer's trainable arrays
  std::vector<std::shared_ptr<float>> running_statistics_;
  std::shared_ptr<float> values_, gradients_, sums_;
  ParameterView all_;
  std::vector<std::shared_ptr<float>> states_;
  std::int64_t step_ = 0;
  double gradient_scale_ = 1;
};

/// Fills a tensor with values uniform in [-1, 1); element i is drawn with item i of `key`.
void fill_uniform(Tensor& tensor, RandomKey key);

/// Initial values of one parameter in row-major order, a pure function of the seed and the indices of layer
/// and parameter. Weights are uniform with variance 2 / fan-in (K. He et al., "Delving deep into rectifiers",
/// ICCV 2015, section 2.2); weights of recurrent layers and embeddings have variance 1 / (3 row length).
/// Scales and running variances are 1, all other parameters 0.
std::vector<float> initial_values(const std::vector<Layer>& layers, std::size_t layer, std::size_t parameter,
                                  std::uint64_t seed);

/// Fills a network's input with values uniform in [-1, 1), or with row indices if an embedding reads it.
void fill_input(Tensor& input, const Model& model, std::uint64_t seed);

/// Fills the targets of the loss with index `index` in its model: class indices (softmax_cross_entropy), 0 or
/// 1 (sigmoid_cross_entropy), or values uniform in [-1, 1).
void fill_targets(Tensor& targets, const Layer& loss, std::size_t index, std::uint64_t seed);

}  // namespace stepcast
