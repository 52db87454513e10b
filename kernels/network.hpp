#pragma once

#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "kernels/backend.hpp"
#include "models/model.hpp"

namespace stepcast {

class Network;

/// Where a network is not the whole model: what it has of it, and on which edges other networks come in. The
/// layer that reads across such an edge gets what another made (`received`), and the error signal of what it
/// reads goes back (`add_error`); the layer that is read across gets its error signal from outside.
struct PartOptions {
  std::size_t first =
      0;  ///< layers [first, last) of the model; edges that cross either end come from outside
  std::size_t last = std::numeric_limits<std::size_t>::max();
  std::size_t border = 0;         ///< so do edges from layers before this one to it and those after; 0: none
  std::int64_t border_batch = 1;  ///< samples of the layers from the border on
  const DevicePart* device = nullptr;  ///< whose model it is, of a cut sample; it outlives the network
  const SharedPart* shared = nullptr;  ///< whose model it is, of shared layers; it outlives the network
  int statistics_replicas = 0;  ///< of `device`: replicas over which batch norm counts; 0: none but this rank
  bool accumulate = false;      ///< gradients of several batches add up until the update
  double loss_weight = 1;       ///< factor on losses and their gradients: the share of a larger mini-batch
  /// Of the same part and optimizer: its parameters, gradients and state are used. It outlives this one.
  Network* shares = nullptr;
};

struct NetworkOptions {
  std::int64_t batch = 1;
  std::uint64_t seed = 1;       ///< of the initial parameters: the same on all workers
  std::uint64_t data_seed = 1;  ///< of synthetic data and dropout: each worker's own
  Optimizer optimizer{};
  PartOptions part{};
};

/// One trainable array as it lies in memory, padding included. All ranks on equal processors have the same
/// layout, so values and gradients can be averaged as they lie.
struct ParameterView {
  float* value = nullptr;
  float* gradient = nullptr;
  std::size_t elements = 0;
};

class Network;

/// What ranks that share a step exchange in it.
struct StepExchange {
  /// Where a coupled layer's pass stops for a sum over ranks (`LayerKernel::summed`); may be empty.
  std::function<void(std::span<float>)> within_pass = {};
  /// Gradients, between the backward pass and the update; may be empty.
  std::function<void(Network&)> before_update = {};
};

/// A model on a backend: trains on one batch of synthetic data, pass by pass or in whole steps.
///
/// All trainable arrays lie in one piece of memory in the model's order, their gradients in another, so that
/// buckets over several layers are contiguous. Activations and their gradients have memory of their own (out
/// of place). The output of a layer that nobody uses and that is no loss gets a constant random gradient, as
/// from a loss outside; so does one that is read outside of a part, until somebody writes another.
class Network {
 public:
  /// @throws InputError if the backend cannot do a layer, std::bad_alloc
  Network(Backend& backend, const Model& model, const NetworkOptions& options);

  /// Called after each pass with the layer's index.
  using Observer = std::function<void(std::size_t layer, Pass pass)>;

  /// forward of all layers; backward_data and backward_weights of all layers from the last; update of all
  /// layers.
  void step(const Observer& observer = {}, const StepExchange& exchange = {});

  bool has(std::size_t layer, Pass pass) const;
  void run(std::size_t layer, Pass pass);
  /// Counts steps for the optimizer; `step` calls it before the first update.
  void begin_update() { ++step_; }
  /// The optimizer's rate, and what gradients are multiplied with (1 / N where they are sums of N), from now
  /// on.
  void set_rate(double learning_rate, double gradient_scale);
  /// The optimizer on elements [begin, end) of all parameters, along any gradient of as many elements.
  void update(std::size_t begin, std::size_t end, const float* gradient);
  /// Parameters as they were made, and an optimizer that has seen nothing. Data stay.
  void reset();

  /// Sum of all losses at the last forward pass.
  double loss() const;
  const Model& model() const { return model_; }
  /// Null: its parameters are all of the model's.
  const SharedPart* shared_part() const { return options_.part.shared; }
  Backend& backend() const { return backend_; }
  Tensor& input() { return *input_; }
  bool contains(std::size_t layer) const { return kernels_.at(layer) != nullptr; }
  LayerKernel& kernel(std::size_t layer) { return *kernels_.at(layer); }
  /// All trainable arrays of the network as one, with the few zeros that align them.
  const ParameterView& all_parameters() const { return all_; }
  /// Trainable arrays of a layer, in order.
  const std::vector<ParameterView>& parameters(std::size_t layer) const { return views_.at(layer); }

  /// What comes in from layer `source` (-1: the model's input); null where nothing here reads it.
  Tensor* received(int source);
  /// The error signal of what came in, summed over its readers here (none: zeros), as row-major values.
  void write_error(int source, std::span<float> sum) const;
  /// Adds it in memory of the backend, as work that it is given; `room` holds one such signal.
  void add_error(int source, float* sum, float* room) const;
  /// The error signal, from outside, of a layer's output; null where nobody outside reads it.
  Tensor* outside_gradient(std::size_t layer);

 private:
  struct Range {
    std::size_t begin = 0, end = 0;  ///< in the arenas [elements]
  };

  LayerSite site_of(std::size_t layer);
  bool here(std::size_t layer) const { return layer >= options_.part.first && layer < options_.part.last; }
  bool comes_in(std::size_t reader, int source) const;
  /// Error signals of what layers here read from `source`, which lies outside.
  std::vector<const Tensor*> errors_of(int source) const;
  Tensor* source(std::size_t reader, int from);
  void make_kernels();
  void bind_parameters();
  void bind_layer(std::size_t layer);
  void connect();
  std::vector<Tensor*> gradients_of(std::size_t layer);
  void accumulate(std::size_t layer);
  void update(std::size_t layer);

  Backend& backend_;
  Model model_;
  NetworkOptions options_;
  std::unique_ptr<Tensor> input_;
  std::map<int, std::unique_ptr<Tensor>> received_;
  std::vector<std::unique_ptr<LayerKernel>> kernels_;  ///< null outside of the part
  std::map<std::size_t, std::unique_ptr<Tensor>> outside_gradients_;
  std::vector<bool> trains_;  ///< a layer with trainable arrays, or after one
  std::vector<std::vector<ParameterView>> views_;
  std::vector<Range> ranges_;  ///< of a layer's trainable arrays
  std::vector<std::shared_ptr<float>> running_statistics_;
  std::shared_ptr<float> values_, gradients_, sums_;
  ParameterView all_;
  std::vector<std::shared_ptr<float>> states_;
  std::int64_t step_ = 0;
  double gradient_scale_ = 1;
};

}  // namespace stepcast
