#include "models/activations.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include "models/cost.hpp"
#include "models/graph.hpp"
#include "models/layer_shapes.hpp"

namespace stepcast {
namespace {

/// Whether the layer's backward pass can do with its output alone, so that the output may overwrite the
/// input.
bool can_overwrite(LayerKind kind) {
  switch (kind) {
    case LayerKind::relu:
    case LayerKind::leaky_relu:
    case LayerKind::sigmoid:
    case LayerKind::tanh:
    case LayerKind::elu:
    case LayerKind::dropout:
    case LayerKind::add:
      return true;
    default:
      return false;
  }
}

double output_elements(const Model& model, int layer) {
  return static_cast<double>(elements(model.layers[static_cast<std::size_t>(layer)].output));
}

double owned(const Model& model, const std::vector<int>& owner, std::size_t layer) {
  return owner[layer] == static_cast<int>(layer) ? output_elements(model, owner[layer]) : 0;
}

/// Layers whose memory is read beyond a cut after the layer that owns it.
std::vector<bool> crossing(const Model& model, const std::vector<int>& owner,
                           const std::vector<std::size_t>& cuts) {
  std::vector<bool> crosses(model.layers.size());
  for (std::size_t reader = 0; reader < model.layers.size(); ++reader) {
    for (const int input : model.layers[reader].inputs) {
      const int source = input < 0 ? input : owner[static_cast<std::size_t>(input)];
      if (source < 0) continue;
      const auto cut = std::lower_bound(cuts.begin(), cuts.end(), static_cast<std::size_t>(source));
      if (cut != cuts.end() && *cut < reader) crosses[static_cast<std::size_t>(source)] = true;
    }
  }
  return crosses;
}

double recomputed_activations(const Model& model, const std::vector<int>& owner,
                              const MemoryOptions& options) {
  std::vector<std::size_t> cuts = checkpoints(model, options.recomputation);
  const std::vector<bool> kept = crossing(model, owner, cuts);
  cuts.push_back(model.layers.size() - 1);
  double saved = 0, stretch = 0, largest = 0;
  for (std::size_t i = 0, cut = 0; i < model.layers.size(); ++i) {
    (kept[i] ? saved : stretch) += owned(model, owner, i);
    stretch += internal_elements(model.layers[i]);
    largest = std::max(largest, stretch);
    if (i != cuts[cut]) continue;
    stretch = 0;
    ++cut;
  }
  return saved + largest;
}

}  // namespace

std::vector<int> memory_owners(const Model& model, const MemoryOptions& options) {
  const bool in_place = options.activations == MemoryOptions::Activations::in_place;
  const std::vector<int> readers = consumers(model);
  std::vector<int> owner;
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    const Layer& layer = model.layers[i];
    const int input = layer.inputs.front();
    const bool alone = input >= 0 && readers[static_cast<std::size_t>(input)] == 1;
    const bool shared = layer.kind == LayerKind::reshape || (in_place && alone && can_overwrite(layer.kind));
    if (!shared) owner.push_back(static_cast<int>(i));
    if (shared) owner.push_back(input < 0 ? input : owner[static_cast<std::size_t>(input)]);
  }
  return owner;
}

std::vector<double> alive_error_signals(const Model& model, const MemoryOptions& options) {
  const std::vector<int> owner = memory_owners(model, options);
  const std::vector<bool> goes_on = backward_data_needed(model);
  std::vector<double> sums(model.layers.size());
  std::set<int> alive;
  for (std::size_t i = model.layers.size(); i-- > 0;) {
    if (!is_loss(model.layers[i].kind)) alive.insert(owner[i]);
    for (const int input : model.layers[i].inputs) {
      if (goes_on[i] && input >= 0) alive.insert(owner[static_cast<std::size_t>(input)]);
    }
    for (const int layer : alive) sums[i] += layer < 0 ? 0 : output_elements(model, layer);
    if (owner[i] == static_cast<int>(i)) alive.erase(owner[i]);
  }
  return sums;
}

std::vector<std::size_t> checkpoints(const Model& model, MemoryOptions::Recomputation how) {
  const std::size_t count = model.layers.size();
  const auto every = static_cast<std::size_t>(std::ceil(std::sqrt(static_cast<double>(count))));
  std::vector<std::size_t> cuts;
  for (std::size_t i = 0; i + 1 < count; ++i) {
    const LayerKind kind = model.layers[i].kind;
    const bool block =
        kind == LayerKind::add || kind == LayerKind::max_pool || kind == LayerKind::average_pool;
    const bool cut = how == MemoryOptions::Recomputation::blocks ? block : (i + 1) % every == 0;
    if (cut) cuts.push_back(i);
  }
  return cuts;
}

double kept_activations(const Model& model, const MemoryOptions& options) {
  const std::vector<int> owner = memory_owners(model, options);
  if (options.recomputation != MemoryOptions::Recomputation::none) {
    return recomputed_activations(model, owner, options);
  }
  double sum = 0;
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    sum += owned(model, owner, i) + internal_elements(model.layers[i]);
  }
  return sum;
}

double kept_error_signals(const Model& model, const MemoryOptions& options) {
  const std::vector<int> owner = memory_owners(model, options);
  if (options.error_signals == MemoryOptions::ErrorSignals::freed)
    return std::ranges::max(alive_error_signals(model, options));
  double sum = input_elements(model);
  for (std::size_t i = 0; i < model.layers.size(); ++i) sum += owned(model, owner, i);
  return sum;
}

double input_elements(const Model& model) {
  return static_cast<double>(elements(model.input));
}

}  // namespace stepcast
