#include <algorithm>

#include "kernels/network.hpp"
#include "kernels/synthetic.hpp"

// What layers read of each other, and what comes in from other networks where this one is a part.

namespace stepcast {
namespace {

/// For what crosses an edge of a part. Samples that are dealt out at a border are copied row by row.
std::unique_ptr<Tensor> make_port(Backend& backend, const PartOptions& part, const Shape& shape) {
  return part.border > 0 ? backend.make_tensor(shape) : backend.make_activations(shape);
}

}  // namespace

bool Network::comes_in(std::size_t reader, int source) const {
  const PartOptions& part = options_.part;
  const auto crosses = [&](std::size_t edge) {
    return edge > 0 && reader >= edge && source < static_cast<int>(edge);
  };
  return crosses(part.first) || crosses(part.border);
}

Tensor* Network::source(std::size_t reader, int from) {
  if (comes_in(reader, from)) {
    auto& port = received_[from];
    const std::int64_t batch = options_.part.border > 0 ? options_.part.border_batch : options_.batch;
    if (port == nullptr)
      port = make_port(backend_, options_.part, batched(batch, model_.layers[reader].input));
    return port.get();
  }
  return from < 0 ? input_.get() : &kernels_.at(static_cast<std::size_t>(from))->output();
}

void Network::connect() {
  for (std::size_t i = kernels_.size(); i-- > 0;) {
    if (!trains_[i] || !contains(i)) continue;
    std::vector<bool> wanted;
    for (const int from : model_.layers[i].inputs) {
      wanted.push_back(from >= 0 && trains_[static_cast<std::size_t>(from)]);
    }
    kernels_[i]->connect_backward(gradients_of(i), wanted);
  }
}

std::vector<Tensor*> Network::gradients_of(std::size_t layer) {
  std::vector<Tensor*> gradients;
  bool read_outside = false;
  for (std::size_t reader = layer + 1; reader < kernels_.size(); ++reader) {
    const std::vector<int>& inputs = model_.layers[reader].inputs;
    for (std::size_t k = 0; k < inputs.size(); ++k) {
      if (inputs[k] != static_cast<int>(layer)) continue;
      const bool outside = !contains(reader) || comes_in(reader, inputs[k]);
      read_outside = read_outside || outside;
      if (!outside) gradients.push_back(kernels_[reader]->input_gradient(k));
    }
  }
  const bool unread = gradients.empty() && kernels_[layer]->targets() == nullptr;
  if (!unread && !read_outside) return gradients;
  auto& outside = outside_gradients_[layer];
  outside = make_port(backend_, options_.part, kernels_[layer]->output().shape());
  fill_uniform(*outside, {.seed = options_.data_seed, .purpose = Purpose::data, .step = 1});
  gradients.push_back(outside.get());
  return gradients;
}

Tensor* Network::received(int source) {
  const auto found = received_.find(source);
  return found == received_.end() ? nullptr : found->second.get();
}

std::vector<const Tensor*> Network::errors_of(int source) const {
  std::vector<const Tensor*> errors;
  for (std::size_t reader = 0; reader < kernels_.size(); ++reader) {
    const std::vector<int>& inputs = model_.layers[reader].inputs;
    for (std::size_t k = 0; contains(reader) && k < inputs.size(); ++k) {
      if (inputs[k] != source || !comes_in(reader, source)) continue;
      if (const Tensor* gradient = kernels_[reader]->input_gradient(k)) errors.push_back(gradient);
    }
  }
  return errors;
}

void Network::write_error(int source, std::span<float> sum) const {
  const std::vector<const Tensor*> errors = errors_of(source);
  if (errors.empty()) {
    std::ranges::fill(sum, 0.0F);
    return;
  }
  errors.front()->copy_to(sum.data());
  std::vector<float> one;
  for (std::size_t k = 1; k < errors.size(); ++k) {
    one.resize(sum.size());
    errors[k]->copy_to(one.data());
    for (std::size_t i = 0; i < one.size(); ++i) sum[i] += one[i];
  }
}

void Network::add_error(int source, float* sum, float* room) const {
  for (const Tensor* gradient : errors_of(source)) {
    backend_.copy_out(*gradient, room);
    backend_.add(room, sum, gradient->elements());
  }
}

Tensor* Network::outside_gradient(std::size_t layer) {
  const auto found = outside_gradients_.find(layer);
  return found == outside_gradients_.end() ? nullptr : found->second.get();
}

}  // namespace stepcast
