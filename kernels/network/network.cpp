#include "kernels/network/network.hpp"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "kernels/network/token_layer.hpp"

namespace stepcast {
namespace {

/// The share of the targets of a loss that a rank has; 1 if it has all, or no loss.
double share_of_targets(const SharedPart& part, std::size_t layer) {
  const Layer &own = part.model.layers[layer], &whole = part.whole.layers[layer];
  if (!is_loss(own.kind)) return 1;
  const auto targets = [&](const Layer& loss) {
    const bool classes = own.kind == LayerKind::softmax_cross_entropy;
    return stepcast::elements(loss.input) / static_cast<double>(classes ? loss.input.back() : 1);
  };
  return targets(own) / targets(whole);
}

constexpr std::size_t kAlignment = 16;  // floats: one cache line

std::size_t aligned(std::size_t elements) {
  return (elements + kAlignment - 1) / kAlignment * kAlignment;
}

}  // namespace

Network::Network(Backend& backend, const Model& model, const NetworkOptions& options)
    : backend_(backend), model_(model), options_(options) {
  input_ = backend_.make_tensor(batched(options_.batch, model_.input));
  make_kernels();
  bind_parameters();
  connect();
  if (options_.part.parameters_of == nullptr) fill_parameters();
  fill_with_synthetic_data(options_.data_seed);
}

void Network::make_kernels() {
  const PartOptions& part = options_.part;
  if (backend_.fuses() && part.spatial_shard == nullptr) {
    fused_ = fused_norms(model_);
    std::erase_if(fused_, [this](const FusedNorm& one) {
      const std::size_t first = one.add < 0 ? one.norm : static_cast<std::size_t>(one.added);
      return !in_part(first) || !in_part(one.norm) || !in_part(one.relu);
    });
  }
  for (std::size_t i = 0; i < model_.layers.size(); ++i) {
    const Layer& layer = model_.layers[i];
    bool trains = std::any_of(layer.parameters.begin(), layer.parameters.end(),
                              [](const ParameterTensor& tensor) { return tensor.trainable; });
    for (const int from : layer.inputs) trains = trains || (from >= 0 && trains_.at(from));
    trains_.push_back(trains);
    kernels_.emplace_back();
    if (!in_part(i)) continue;
    const bool exchanges = part.tensor_shard != nullptr && !part.tensor_shard->exchanged.empty() &&
                           part.tensor_shard->exchanged[i];
    kernels_.back() = exchanges ? make_token_layer(backend_, site_of(i), *part.tensor_shard->exchanged[i])
                                : backend_.make_kernel(site_of(i));
  }
}

LayerSite Network::site_of(std::size_t i) {
  const PartOptions& part = options_.part;
  const Layer& layer = model_.layers[i];
  const bool whole = part.whole_from > 0 && i >= part.whole_from;
  LayerSite site{.layer = &layer,
                 .batch = whole ? part.whole_batch : options_.batch,
                 .inputs = {},
                 .seed = options_.data_seed,
                 .index = static_cast<std::uint32_t>(i),
                 .loss_weight = part.loss_weight};
  for (const int from : layer.inputs) site.inputs.push_back(input_from(i, from));
  add_fusion(i, site);
  if (part.tensor_shard != nullptr && part.tensor_shard->shares[i])
    site.share = &*part.tensor_shard->shares[i];
  if (part.spatial_shard == nullptr) {
    if (part.tensor_shard != nullptr) site.loss_weight *= share_of_targets(*part.tensor_shard, i);
    return site;
  }
  site.loss_weight *= part.spatial_shard->share[i];
  if (!part.spatial_shard->rows[i].empty()) site.rows = &part.spatial_shard->rows[i];
  site.separate_border = site.rows != nullptr && part.spatial_shard->separate_border;
  if (layer.kind == LayerKind::batch_norm && part.statistics_replicas > 0) {
    double own = site.batch;
    for (std::size_t k = 1; k < layer.input.size(); ++k) own *= layer.input[k];
    site.statistics_count = part.statistics_replicas * std::llround(own / part.spatial_shard->share[i]);
  }
  return site;
}

void Network::add_fusion(std::size_t layer, LayerSite& site) {
  for (const FusedNorm& one : fused_) {
    if (one.norm == layer) {
      site.with_relu = true;
      if (one.add >= 0) site.inputs.push_back(input_from(layer, one.added));
    }
    if (one.relu == layer || std::cmp_equal(one.add, layer)) site.computed_by = kernels_[one.norm].get();
  }
}

void Network::bind_parameters() {
  std::size_t total = 0;
  for (std::size_t i = 0; i < kernels_.size(); ++i) {
    ranges_.push_back({total, total});
    if (!contains(i)) continue;
    const std::vector<std::size_t> elements = kernels_[i]->stored_elements();
    for (std::size_t k = 0; k < elements.size(); ++k) {
      if (model_.layers[i].parameters[k].trainable) total += aligned(elements[k]);
    }
    ranges_.back().end = total;
  }
  if (const Network* other = options_.part.parameters_of) {
    std::tie(values_, gradients_, sums_, states_) =
        std::tie(other->values_, other->gradients_, other->sums_, other->states_);
  } else {
    const std::size_t elements = std::max(total, kAlignment);
    values_ = backend_.allocate(elements);
    gradients_ = backend_.allocate(elements);
    sums_ = options_.part.accumulate ? backend_.allocate(elements) : gradients_;
    for (std::size_t s = 0; s < state_arrays(options_.optimizer); ++s)
      states_.push_back(backend_.allocate(elements));
  }
  all_ = {values_.get(), sums_.get(), total};
  views_.resize(kernels_.size());
  for (std::size_t i = 0; i < kernels_.size(); ++i) {
    if (contains(i)) bind_layer(i);
  }
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

bool Network::has(std::size_t layer, Pass pass) const {
  if (!contains(layer)) return false;
  const bool trainable = ranges_.at(layer).end > ranges_.at(layer).begin;
  if (pass == Pass::update) return trainable;
  if (pass == Pass::backward_weights && trainable && options_.part.accumulate) return true;
  return kernels_.at(layer)->has(pass);
}

void Network::run(std::size_t layer, Pass pass) {
  if (pass == Pass::update) return update_range(ranges_.at(layer));
  if (before_pass_) {
    const bool halo = pass != Pass::backward_weights && kernels_.at(layer)->has_halo(pass);
    if (halo) kernels_[layer]->prepare_halo(pass);
    before_pass_(*this, layer, pass);
  }
  kernels_.at(layer)->run(pass);
  if (pass == Pass::backward_weights && options_.part.accumulate) accumulate(ranges_.at(layer));
}

LayerGroup* Network::group_of(std::size_t first, std::size_t last) {
  const auto [group, is_new] = groups_.try_emplace({first, last});
  if (is_new && backend_.fuses()) {
    std::vector<LayerKernel*> layers;
    for (std::size_t i = first; i < last; ++i) layers.push_back(kernels_.at(i).get());
    group->second = backend_.make_group(layers);
  }
  return group->second.get();
}

void Network::run_forward(std::size_t first, std::size_t last, const Observer& after) {
  run_range({Pass::forward, first, last}, after);
}

void Network::run_backward(std::size_t first, std::size_t last, const Observer& after) {
  run_range({Pass::backward_data, first, last}, after);
}

void Network::run_range(const PassRange& range, const Observer& after) {
  const auto enqueue = [&] {
    range.pass == Pass::forward ? enqueue_forward(range.first, range.last, after)
                                : enqueue_backward(range.first, range.last, after);
  };
  if (after || range.first >= range.last) return enqueue();
  Recording& one = recordings_[range];
  // The first run makes what later runs use, such as lists in the device's memory.
  if (one.runs < 2 && ++one.runs == 2 && repeats(range)) one.work = backend_.record_work(enqueue);
  one.work != nullptr ? one.work->start() : enqueue();
}

bool Network::repeats(const PassRange& range) const {
  // Passes of shards stop for the halos and sums that ranks exchange within them.
  bool same = options_.part.spatial_shard == nullptr && options_.part.tensor_shard == nullptr;
  for (std::size_t i = range.first; same && i < range.last; ++i)
    same = !contains(i) || kernels_[i]->repeats();
  return same;
}

bool Network::has_recordings() const {
  return std::ranges::any_of(recordings_, [](const auto& one) { return one.second.work != nullptr; });
}

void Network::enqueue_forward(std::size_t first, std::size_t last, const Observer& after) {
  LayerGroup* group = group_of(first, last);
  if (group != nullptr) {
    group->begin_forward();
    if (after) after(kAllLayers, Pass::forward);
  }
  for (std::size_t i = first; i < last; ++i) {
    if (!has(i, Pass::forward)) continue;
    run(i, Pass::forward);
    if (after) after(i, Pass::forward);
  }
  if (group != nullptr) group->end_forward();
}

void Network::enqueue_backward(std::size_t first, std::size_t last, const Observer& after) {
  LayerGroup* group = group_of(first, last);
  if (group != nullptr) group->begin_backward();
  for (std::size_t i = last; i-- > first;) {
    for (const Pass pass : {Pass::backward_data, Pass::backward_weights}) {
      if (!has(i, pass)) continue;
      group != nullptr ? kernels_[i]->run(pass) : run(i, pass);
      if (after) after(i, pass);
    }
  }
  if (group == nullptr || first >= last) return;
  group->end_backward();
  if (options_.part.accumulate) accumulate({ranges_[first].begin, ranges_[last - 1].end});
  if (after) after(kAllLayers, Pass::backward_weights);
}

std::vector<double> Network::elements_for_all(Pass pass) {
  if (pass != Pass::update) return group_of(0, kernels_.size())->converted(pass);
  std::vector<double> elements;
  for (const Range& range : ranges_) elements.push_back(range.end - range.begin);
  return elements;
}

/// Adds the gradients that the backward pass wrote to their sums since the last update.
void Network::accumulate(Range range) {
  backend_.add(gradients_.get() + range.begin, sums_.get() + range.begin, range.end - range.begin);
}

void Network::update_range(Range range) {
  update(range.begin, range.end, sums_.get() + range.begin);
  if (options_.part.accumulate) backend_.clear(sums_.get() + range.begin, range.end - range.begin);
}

void Network::update_layers(std::size_t first, std::size_t last) {
  if (first >= last) return;
  if (backend_.fuses()) return update_range({ranges_.at(first).begin, ranges_.at(last - 1).end});
  for (std::size_t i = first; i < last; ++i) {
    if (has(i, Pass::update)) update_range(ranges_[i]);
  }
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

void Network::step(const Observer& observer, const StepExchange& exchange) {
  const auto sum = [&](LayerKernel& kernel, Pass which) {
    const std::span<float> summed = kernel.partial_sums(which);
    if (summed.empty()) return;
    exchange.within_pass(summed);
    kernel.finish(which);
  };
  const auto after = [&](std::size_t layer, Pass which) {
    if (exchange.within_pass && layer != kAllLayers) sum(kernel(layer), which);
    if (observer) observer(layer, which);
  };
  before_pass_ = exchange.before_pass;
  run_forward(0, kernels_.size(), after);
  run_backward(0, kernels_.size(), after);
  before_pass_ = {};
  if (exchange.before_update) exchange.before_update(*this);
  begin_update();
  if (backend_.fuses()) {
    update_layers(0, kernels_.size());
    if (observer && all_.elements > 0) observer(kAllLayers, Pass::update);
  }
  for (std::size_t i = 0; i < kernels_.size() && !backend_.fuses(); ++i) {
    if (!has(i, Pass::update)) continue;
    run(i, Pass::update);
    if (observer) observer(i, Pass::update);
  }
  backend_.finish();
}

double Network::loss() const {
  double sum = 0;
  for (const auto& kernel : kernels_) sum += kernel ? kernel->loss() : 0;
  return sum;
}

}  // namespace stepcast
