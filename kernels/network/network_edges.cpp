#include <algorithm>
#include <utility>

#include "kernels/network/network.hpp"

namespace stepcast {

// Edges between layers, and edges from and to other networks if this network is a part of a model.

namespace {

/// A tensor for an edge from or to another network. Redistributed samples are copied row by row, so they need
/// a row-major layout.
std::unique_ptr<Tensor> make_boundary_tensor(Backend& backend, const PartOptions& part, const Shape& shape) {
  return part.whole_from > 0 ? backend.make_tensor(shape) : backend.make_activations(shape);
}

}  // namespace

bool Network::crosses_boundary(std::size_t reader, int source) const {
  const PartOptions& part = options_.part;
  const auto crosses = [&](std::size_t edge) {
    return edge > 0 && reader >= edge && source < static_cast<int>(edge);
  };
  const GatheredInput* whole = gathered_input(part.tensor_shard, reader);
  return (whole != nullptr && whole->source == source) || crosses(part.first) || crosses(part.whole_from);
}

Tensor* Network::input_from(std::size_t reader, int from) {
  if (crosses_boundary(reader, from)) {
    auto& tensor = boundary_inputs_[from];
    const std::int64_t batch = options_.part.whole_from > 0 ? options_.part.whole_batch : options_.batch;
    if (tensor == nullptr)
      tensor = make_boundary_tensor(backend_, options_.part, batched(batch, model_.layers[reader].input));
    return tensor.get();
  }
  return from < 0 ? input_.get() : &kernels_.at(from)->output();
}

void Network::connect() {
  for (std::size_t i = kernels_.size(); i-- > 0;) {
    if (!trains_[i] || !contains(i)) continue;
    std::vector<bool> wanted;
    for (const int from : model_.layers[i].inputs) {
      wanted.push_back(from >= 0 && trains_[from]);
    }
    kernels_[i]->connect_backward(output_gradients_of(i), wanted);
  }
}

std::vector<Tensor*> Network::output_gradients_of(std::size_t layer) {
  std::vector<Tensor*> gradients;
  bool read_outside = false;
  for (std::size_t reader = layer + 1; reader < kernels_.size(); ++reader) {
    const std::vector<int>& inputs = model_.layers[reader].inputs;
    for (std::size_t k = 0; k < inputs.size(); ++k) {
      if (std::cmp_not_equal(inputs[k], layer)) continue;
      const bool outside = !contains(reader) || crosses_boundary(reader, inputs[k]);
      read_outside = read_outside || outside;
      if (!outside) gradients.push_back(kernels_[reader]->input_gradient(k));
    }
  }
  const bool unread = gradients.empty() && kernels_[layer]->targets() == nullptr;
  if (!unread && !read_outside) return gradients;
  auto& outside = boundary_output_gradients_[layer];
  outside = make_boundary_tensor(backend_, options_.part, kernels_[layer]->output().shape());
  fill_uniform(*outside, {.seed = options_.data_seed, .purpose = Purpose::data, .step = 1});
  gradients.push_back(outside.get());
  return gradients;
}

Tensor* Network::boundary_input(int source) {
  const auto found = boundary_inputs_.find(source);
  return found == boundary_inputs_.end() ? nullptr : found->second.get();
}

std::vector<const Tensor*> Network::input_gradients_of(int source) const {
  std::vector<const Tensor*> gradients;
  for (std::size_t reader = 0; reader < kernels_.size(); ++reader) {
    const std::vector<int>& inputs = model_.layers[reader].inputs;
    for (std::size_t k = 0; contains(reader) && k < inputs.size(); ++k) {
      if (inputs[k] != source || !crosses_boundary(reader, source)) continue;
      if (const Tensor* gradient = kernels_[reader]->input_gradient(k)) gradients.push_back(gradient);
    }
  }
  return gradients;
}

void Network::write_input_gradient(int source, std::span<float> sum) const {
  const std::vector<const Tensor*> gradients = input_gradients_of(source);
  if (gradients.empty()) {
    std::ranges::fill(sum, 0.0F);
    return;
  }
  gradients.front()->copy_to(sum.data());
  std::vector<float> one;
  for (std::size_t k = 1; k < gradients.size(); ++k) {
    one.resize(sum.size());
    gradients[k]->copy_to(one.data());
    for (std::size_t i = 0; i < one.size(); ++i) sum[i] += one[i];
  }
}

void Network::add_input_gradient(int source, float* sum, float* scratch) const {
  for (const Tensor* gradient : input_gradients_of(source)) {
    backend_.copy_out(*gradient, scratch);
    backend_.add(scratch, sum, gradient->elements());
  }
}

Tensor* Network::boundary_output_gradient(std::size_t layer) {
  const auto found = boundary_output_gradients_.find(layer);
  return found == boundary_output_gradients_.end() ? nullptr : found->second.get();
}

}  // namespace stepcast
