#include "kernels/network.hpp"

#include <algorithm>

#include "kernels/synthetic.hpp"

namespace stepcast {
namespace {

constexpr std::size_t kAlignment = 16;  // floats: one cache line

std::size_t aligned(std::size_t elements) {
  return (elements + kAlignment - 1) / kAlignment * kAlignment;
}

Shape batched(std::int64_t batch, const Shape& sample) {
  Shape shape{batch};
  shape.insert(shape.end(), sample.begin(), sample.end());
  return shape;
}

}  // namespace

Network::Network(Backend& backend, const Model& model, const NetworkOptions& options)
    : backend_(backend), model_(model), options_(options) {
  input_ = backend_.make_tensor(batched(options_.batch, model_.input));
  make_kernels();
  bind_parameters();
  connect();
  fill_parameters(*this, options_.seed);
  fill_with_synthetic_data(*this, options_.data_seed);
}

void Network::make_kernels() {
  for (std::size_t i = 0; i < model_.layers.size(); ++i) {
    const Layer& layer = model_.layers[i];
    LayerSite site{.layer = &layer,
                   .batch = options_.batch,
                   .inputs = {},
                   .seed = options_.data_seed,
                   .index = static_cast<std::uint32_t>(i)};
    bool trains = std::any_of(layer.parameters.begin(), layer.parameters.end(),
                              [](const ParameterTensor& tensor) { return tensor.trainable; });
    for (const int from : layer.inputs) {
      site.inputs.push_back(from < 0 ? input_.get() : &kernels_.at(static_cast<std::size_t>(from))->output());
      trains = trains || (from >= 0 && trains_.at(static_cast<std::size_t>(from)));
    }
    kernels_.push_back(backend_.make_kernel(site));
    trains_.push_back(trains);
  }
}

void Network::bind_parameters() {
  std::size_t total = 0;
  for (std::size_t i = 0; i < kernels_.size(); ++i) {
    const std::vector<std::size_t> elements = kernels_[i]->stored_elements();
    ranges_.push_back({total, total});
    for (std::size_t k = 0; k < elements.size(); ++k) {
      if (model_.layers[i].parameters[k].trainable) total += aligned(elements[k]);
    }
    ranges_.back().end = total;
  }
  values_ = backend_.allocate(total);
  gradients_ = backend_.allocate(total);
  all_ = {values_.get(), gradients_.get(), total};
  for (std::size_t s = 0; s < state_arrays(options_.optimizer); ++s)
    states_.push_back(backend_.allocate(total));
  views_.resize(kernels_.size());
  for (std::size_t i = 0; i < kernels_.size(); ++i) bind_layer(i);
}

void Network::bind_layer(std::size_t layer) {
  const std::vector<std::size_t> elements = kernels_[layer]->stored_elements();
  std::size_t offset = ranges_[layer].begin;
  for (std::size_t k = 0; k < elements.size(); ++k) {
    if (!model_.layers[layer].parameters[k].trainable) {
      running_statistics_.push_back(backend_.allocate(elements[k]));
      kernels_[layer]->bind(k, running_statistics_.back().get(), nullptr);
      continue;
    }
    const ParameterView view{values_.get() + offset, gradients_.get() + offset, elements[k]};
    kernels_[layer]->bind(k, view.value, view.gradient);
    views_[layer].push_back(view);
    offset += aligned(elements[k]);
  }
}

void Network::connect() {
  for (std::size_t i = kernels_.size(); i-- > 0;) {
    if (!trains_[i]) continue;
    std::vector<bool> wanted;
    for (const int from : model_.layers[i].inputs) {
      wanted.push_back(from >= 0 && trains_[static_cast<std::size_t>(from)]);
    }
    kernels_[i]->connect_backward(gradients_of(i), wanted);
  }
}

std::vector<Tensor*> Network::gradients_of(std::size_t layer) {
  std::vector<Tensor*> gradients;
  for (std::size_t consumer = layer + 1; consumer < kernels_.size(); ++consumer) {
    const std::vector<int>& inputs = model_.layers[consumer].inputs;
    for (std::size_t k = 0; k < inputs.size(); ++k) {
      if (inputs[k] == static_cast<int>(layer)) gradients.push_back(kernels_[consumer]->input_gradient(k));
    }
  }
  if (!gradients.empty() || kernels_[layer]->targets() != nullptr) return gradients;
  outside_gradients_.push_back(backend_.make_tensor(kernels_[layer]->output().shape()));
  fill_uniform(*outside_gradients_.back(), {.seed = options_.data_seed, .purpose = Purpose::data, .step = 1});
  return {outside_gradients_.back().get()};
}

bool Network::has(std::size_t layer, Pass pass) const {
  if (pass == Pass::update) return ranges_.at(layer).end > ranges_.at(layer).begin;
  return kernels_.at(layer)->has(pass);
}

void Network::run(std::size_t layer, Pass pass) {
  if (pass == Pass::update) return update(layer);
  kernels_.at(layer)->run(pass);
}

void Network::update(std::size_t layer) {
  const Range range = ranges_.at(layer);
  update(range.begin, range.end, gradients_.get() + range.begin);
}

void Network::update(std::size_t begin, std::size_t end, const float* gradient) {
  if (begin == end) return;
  UpdateArrays arrays{.value = values_.get() + begin,
                      .gradient = gradient,
                      .elements = end - begin,
                      .step = step_,
                      .scale = static_cast<float>(gradient_scale_)};
  for (std::size_t s = 0; s < states_.size(); ++s) arrays.state[s] = states_[s].get() + begin;
  backend_.update(options_.optimizer, arrays);
}

void Network::set_rate(double learning_rate, double gradient_scale) {
  options_.optimizer.learning_rate = learning_rate;
  gradient_scale_ = gradient_scale;
}

void Network::reset() {
  fill_parameters(*this, options_.seed);
  for (const auto& state : states_) std::fill_n(state.get(), all_.elements, 0.0F);
  step_ = 0;
}

void Network::step(const Observer& observer, const std::function<void()>& before_update) {
  const auto pass = [&](std::size_t layer, Pass which) {
    if (!has(layer, which)) return;
    run(layer, which);
    if (observer) observer(layer, which);
  };
  for (std::size_t i = 0; i < kernels_.size(); ++i) pass(i, Pass::forward);
  for (std::size_t i = kernels_.size(); i-- > 0;) {
    pass(i, Pass::backward_data);
    pass(i, Pass::backward_weights);
  }
  if (before_update) before_update();
  begin_update();
  for (std::size_t i = 0; i < kernels_.size(); ++i) pass(i, Pass::update);
  backend_.finish();
}

double Network::loss() const {
  double sum = 0;
  for (const auto& kernel : kernels_) sum += kernel->loss();
  return sum;
}

}  // namespace stepcast
