#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "kernels/backend.hpp"
#include "models/model.hpp"

namespace stepcast {

struct NetworkOptions {
  std::int64_t batch = 1;
  std::uint64_t seed = 1;       ///< of the initial parameters: the same on all workers
  std::uint64_t data_seed = 1;  ///< of synthetic data and dropout: each worker's own
  Optimizer optimizer{};
};

/// One trainable array as it lies in memory, padding included. All ranks on equal processors have the same
/// layout, so values and gradients can be averaged as they lie.
struct ParameterView {
  float* value = nullptr;
  float* gradient = nullptr;
  std::size_t elements = 0;
};

/// A model on a backend: trains on one batch of synthetic data, pass by pass or in whole steps.
///
/// All trainable arrays lie in one piece of memory in the model's order, their gradients in another, so that
/// buckets over several layers are contiguous. Activations and their gradients have memory of their own (out
/// of place). The output of a layer that nobody uses and that is no loss gets a constant random gradient, as
/// from a loss outside.
class Network {
 public:
  /// @throws InputError if the backend cannot do a layer, std::bad_alloc
  Network(Backend& backend, const Model& model, const NetworkOptions& options);

  /// Called after each pass with the layer's index.
  using Observer = std::function<void(std::size_t layer, Pass pass)>;

  /// forward of all layers; backward_data and backward_weights of all layers from the last; update of all
  /// layers.
  /// @param before_update  called between the two, where ranks exchange gradients
  void step(const Observer& observer = {}, const std::function<void()>& before_update = {});

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
  Tensor& input() { return *input_; }
  LayerKernel& kernel(std::size_t layer) { return *kernels_.at(layer); }
  /// All trainable arrays of the network as one, with the few zeros that align them.
  const ParameterView& all_parameters() const { return all_; }
  /// Trainable arrays of a layer, in order.
  const std::vector<ParameterView>& parameters(std::size_t layer) const { return views_.at(layer); }

 private:
  struct Range {
    std::size_t begin = 0, end = 0;  ///< in the arenas [elements]
  };

  void make_kernels();
  void bind_parameters();
  void bind_layer(std::size_t layer);
  void connect();
  std::vector<Tensor*> gradients_of(std::size_t layer);
  void update(std::size_t layer);

  Backend& backend_;
  Model model_;
  NetworkOptions options_;
  std::unique_ptr<Tensor> input_;
  std::vector<std::unique_ptr<LayerKernel>> kernels_;
  std::vector<std::unique_ptr<Tensor>> outside_gradients_;
  std::vector<bool> trains_;  ///< a layer with trainable arrays, or after one
  std::vector<std::vector<ParameterView>> views_;
  std::vector<Range> ranges_;  ///< of a layer's trainable arrays
  std::vector<std::shared_ptr<float>> running_statistics_;
  std::shared_ptr<float> values_, gradients_;
  ParameterView all_;
  std::vector<std::shared_ptr<float>> states_;
  std::int64_t step_ = 0;
  double gradient_scale_ = 1;
};

}  // namespace stepcast
