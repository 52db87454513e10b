#include <algorithm>
#include <set>

#include "models/cost/cost.hpp"
#include "models/cost/memory_options.hpp"
#include "models/network/layer.hpp"
#include "models/network/model.hpp"

namespace stepcast {
namespace {

/// True for activations whose derivative follows from their output alone.
bool is_derived_from_output(LayerKind kind) {
  switch (kind) {
    case LayerKind::relu:
    case LayerKind::leaky_relu:
    case LayerKind::sigmoid:
    case LayerKind::tanh:
    case LayerKind::elu:
      return true;
    default:
      return false;
  }
}

/// True if the backward pass of the layer does not need its input, so that the output may overwrite it.
bool can_overwrite(const Layer& layer) {
  switch (layer.kind) {
    case LayerKind::dropout:
    case LayerKind::add:
    case LayerKind::position_embedding:
      return true;
    case LayerKind::rotary_embedding:
      return layer.inputs.size() == 1;
    default:
      return is_derived_from_output(layer.kind);
  }
}

double output_elements(const Model& model, int layer) {
  return elements(model.layers[layer].output);
}

double owned(const Model& model, const std::vector<int>& owner, std::size_t layer) {
  return std::cmp_equal(owner[layer], layer) ? output_elements(model, owner[layer]) : 0;
}

/// True if the memory of each layer is read after its segment.
std::vector<bool> read_past_segment(const Model& model, const std::vector<int>& owner,
                                    const std::vector<RecomputedLayer>& layers) {
  std::vector<bool> crosses(model.layers.size());
  for (std::size_t reader = 0; reader < model.layers.size(); ++reader) {
    for (const int input : model.layers[reader].inputs) {
      const int source = input < 0 ? input : owner[input];
      if (source < 0) continue;
      if (layers[source].segment < layers[reader].segment) crosses[source] = true;
    }
  }
  return crosses;
}

/// Elements that stay between the passes, and those of the largest segment, which are computed again.
struct RecomputedElements {
  double saved = 0, largest = 0;
};

RecomputedElements recomputed_elements(const Model& model, const MemoryOptions& options,
                                       const std::vector<RecomputedLayer>& layers) {
  const std::vector<int> owner = memory_owners(model, options);
  const std::vector<bool> crosses = read_past_segment(model, owner, layers);
  RecomputedElements sum;
  double segment = 0;
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    const RecomputedLayer& layer = layers[i];
    if (i > 0 && layers[i - 1].segment != layer.segment) segment = 0;
    const double kept = crosses[i] || !layer.checkpointed ? 1 : layer.kept;
    const double inside = !layer.checkpointed || layer.keeps_inside ? 1 : 0;
    const double output = owned(model, owner, i), own = internal_elements(model.layers[i]);
    sum.saved += kept * output + inside * own;
    segment += (1 - kept) * output + (1 - inside) * own;
    sum.largest = std::max(sum.largest, segment);
  }
  return sum;
}

}  // namespace

std::vector<int> memory_owners(const Model& model, const MemoryOptions& options) {
  const bool in_place = options.activations == MemoryOptions::Activations::in_place;
  const std::vector<int> readers = consumers(model);
  std::vector<int> owner;
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    const Layer& layer = model.layers[i];
    const int input = layer.inputs.front();
    const bool alone = input >= 0 && readers[input] == 1;
    const bool shared = layer.kind == LayerKind::reshape || (in_place && alone && can_overwrite(layer));
    if (!shared) owner.push_back(i);
    if (shared) owner.push_back(input < 0 ? input : owner[input]);
  }
  return owner;
}

std::vector<double> live_error_signals(const Model& model, const MemoryOptions& options) {
  const std::vector<int> owner = memory_owners(model, options);
  const std::vector<bool> goes_on = backward_data_needed(model);
  std::vector<double> sums(model.layers.size());
  std::set<int> live;
  for (std::size_t i = model.layers.size(); i-- > 0;) {
    if (!is_loss(model.layers[i].kind)) live.insert(owner[i]);
    for (const int input : model.layers[i].inputs) {
      if (goes_on[i] && input >= 0) live.insert(owner[input]);
    }
    for (const int layer : live) sums[i] += layer < 0 ? 0 : output_elements(model, layer);
    if (std::cmp_equal(owner[i], i)) live.erase(owner[i]);
  }
  return sums;
}

std::vector<std::size_t> checkpoints(const Model& model) {
  std::vector<std::size_t> checkpoint_layers;
  for (std::size_t i = 0; i + 1 < model.layers.size(); ++i) {
    const LayerKind kind = model.layers[i].kind;
    if (kind == LayerKind::add || kind == LayerKind::max_pool || kind == LayerKind::average_pool)
      checkpoint_layers.push_back(i);
  }
  return checkpoint_layers;
}

std::vector<RecomputedLayer> recomputed_layers(const Model& model, const MemoryOptions& options) {
  if (!options.recomputed.empty()) return options.recomputed;
  if (options.recomputation == MemoryOptions::Recomputation::none) return {};
  const std::vector<std::size_t> ends = checkpoints(model);
  std::vector<RecomputedLayer> layers;
  for (std::size_t i = 0, segment = 0; i < model.layers.size(); ++i) {
    layers.push_back({.segment = static_cast<int>(segment)});
    if (segment < ends.size() && ends[segment] == i) ++segment;
  }
  return layers;
}

double kept_activations(const Model& model, const MemoryOptions& options) {
  const std::vector<RecomputedLayer> layers = recomputed_layers(model, options);
  if (!layers.empty() && !options.keeps_last) {
    const RecomputedElements again = recomputed_elements(model, options, layers);
    return again.saved + again.largest;
  }
  const std::vector<int> owner = memory_owners(model, options);
  double sum = 0;
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    sum += owned(model, owner, i) + internal_elements(model.layers[i]);
  }
  return sum;
}

double held_activations(const Model& model, const MemoryOptions& options) {
  const std::vector<RecomputedLayer> layers = recomputed_layers(model, options);
  return layers.empty() ? kept_activations(model, options)
                        : recomputed_elements(model, options, layers).saved;
}

double kept_error_signals(const Model& model, const MemoryOptions& options) {
  const std::vector<int> owner = memory_owners(model, options);
  if (options.error_signals == MemoryOptions::ErrorSignals::freed)
    return std::ranges::max(live_error_signals(model, options));
  double sum = input_elements(model);
  for (std::size_t i = 0; i < model.layers.size(); ++i) sum += owned(model, owner, i);
  return sum;
}

double input_elements(const Model& model) {
  return elements(model.input);
}

namespace {

bool backward_reads_output(LayerKind kind) {
  switch (kind) {
    case LayerKind::max_pool:
    case LayerKind::lstm:
    case LayerKind::gru:
      return true;
    default:
      return is_loss(kind) || is_derived_from_output(kind);
  }
}

bool backward_reads_inputs(LayerKind kind) {
  switch (kind) {
    case LayerKind::average_pool:
    case LayerKind::add:
    case LayerKind::up_sample:
    case LayerKind::reshape:
    case LayerKind::dropout:
    case LayerKind::concatenate:
    case LayerKind::position_embedding:
    case LayerKind::rotary_embedding:
    case LayerKind::class_token:
    case LayerKind::first_token:
    case LayerKind::slice:
      return false;
    default:
      return !is_derived_from_output(kind);
  }
}

/// The first and the last layer that read an output; first > last if no layer does.
struct Readers {
  int first, last = -1;

  void add(int layer) {
    first = std::min(first, layer);
    last = std::max(last, layer);
  }
};

/// Layer outputs, by the layer whose memory holds them.
struct Outputs {
  std::vector<int> owner;
  std::vector<double> elements;  ///< elements that the layer holds; 0 if another layer holds its output
  std::vector<Readers> forward, backward;
};

Outputs outputs_of(const Model& model, const MemoryOptions& options) {
  const int layers = model.layers.size();
  Outputs outputs;
  outputs.owner = memory_owners(model, options);
  outputs.elements.resize(model.layers.size());
  outputs.forward.resize(model.layers.size(), {layers});
  outputs.backward = outputs.forward;
  for (int i = 0; i < layers; ++i) {
    const Layer& layer = model.layers[i];
    const int own = outputs.owner[i];
    if (own == i) outputs.elements[i] = elements(layer.output);
    if (own >= 0) outputs.forward[own].add(i);
    if (own >= 0 && backward_reads_output(layer.kind)) outputs.backward[own].add(i);
    for (const int input : layer.inputs) {
      const int from = input < 0 ? input : outputs.owner[input];
      if (from < 0) continue;
      outputs.forward[from].add(i);
      if (backward_reads_inputs(layer.kind)) outputs.backward[from].add(i);
    }
  }
  return outputs;
}

/// Elements of all outputs that are in memory while a layer runs.
/// @param early  number of layers before its first reader, in the order of the pass, at which an output
/// arrives
double live(const Outputs& outputs, const std::vector<Readers>& readers, int layer, int early) {
  double sum = 0;
  for (std::size_t i = 0; i < readers.size(); ++i) {
    if (readers[i].first <= layer && layer <= readers[i].last + early) sum += outputs.elements[i];
  }
  return sum;
}

}  // namespace

WorkingSet swapped_working_set(const Model& model, const MemoryOptions& options) {
  const Outputs outputs = outputs_of(model, options);
  const bool freed = options.error_signals == MemoryOptions::ErrorSignals::freed;
  const std::vector<double> errors = live_error_signals(model, options);
  const double all_errors = freed ? 0 : kept_error_signals(model, options);
  WorkingSet worst;
  for (int i = model.layers.size() - 1; i >= 0; --i) {
    const double inside = internal_elements(model.layers[i]);
    const double before = i > 0 ? internal_elements(model.layers[i - 1]) : 0;
    const WorkingSet forward{live(outputs, outputs.forward, i, 0) + inside, all_errors};
    const WorkingSet backward{live(outputs, outputs.backward, i, 1) + inside + before,
                              freed ? errors[i] : all_errors};
    for (const WorkingSet& moment : {forward, backward}) {
      if (moment.total() > worst.total()) worst = moment;
    }
  }
  return worst;
}

std::vector<double> copied_elements(const Model& model, const MemoryOptions& options) {
  const Outputs outputs = outputs_of(model, options);
  std::vector<double> copied;
  std::set<int> done;
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    const Layer& layer = model.layers[i];
    double sum =
        is_loss(layer.kind)
            ? 0
            : internal_elements(
                  layer);  // the backward pass begins with the loss, so that its state is not swapped
    for (const int input : layer.inputs) {
      const int from = input < 0 ? input : outputs.owner[input];
      if (from < 0 || from == outputs.owner[i] || !done.insert(from).second) continue;
      if (outputs.backward[from].last >= 0) sum += outputs.elements[from];
    }
    copied.push_back(sum);
  }
  return copied;
}

}  // namespace stepcast
