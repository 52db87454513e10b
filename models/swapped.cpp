#include "models/swapped.hpp"

#include <algorithm>
#include <set>

#include "models/activations.hpp"
#include "models/cost.hpp"
#include "models/layer_shapes.hpp"

namespace stepcast {
namespace {

bool backward_reads_output(LayerKind kind) {
  switch (kind) {
    case LayerKind::relu:
    case LayerKind::leaky_relu:
    case LayerKind::sigmoid:
    case LayerKind::tanh:
    case LayerKind::elu:
    case LayerKind::max_pool:
    case LayerKind::lstm:
    case LayerKind::gru:
      return true;
    default:
      return is_loss(kind);
  }
}

bool backward_reads_inputs(LayerKind kind) {
  switch (kind) {
    case LayerKind::relu:
    case LayerKind::leaky_relu:
    case LayerKind::sigmoid:
    case LayerKind::tanh:
    case LayerKind::elu:
    case LayerKind::average_pool:
    case LayerKind::add:
    case LayerKind::up_sample:
    case LayerKind::reshape:
    case LayerKind::dropout:
      return false;
    default:
      return true;
  }
}

/// Layers from the first to the last that read an output; none: first > last.
struct Readers {
  int first, last = -1;

  void add(int layer) {
    first = std::min(first, layer);
    last = std::max(last, layer);
  }
};

/// Outputs by the layer whose memory holds them.
struct Outputs {
  std::vector<int> owner;
  std::vector<double> elements;  ///< of what a layer holds; 0 where its output lies elsewhere
  std::vector<Readers> forward, backward;
};

Outputs outputs_of(const Model& model, const MemoryOptions& options) {
  const auto layers = static_cast<int>(model.layers.size());
  Outputs outputs;
  outputs.owner = memory_owners(model, options);
  outputs.elements.resize(model.layers.size());
  outputs.forward.resize(model.layers.size(), {layers});
  outputs.backward = outputs.forward;
  for (int i = 0; i < layers; ++i) {
    const auto at = static_cast<std::size_t>(i);
    const Layer& layer = model.layers[at];
    const int own = outputs.owner[at];
    if (own == i) outputs.elements[at] = static_cast<double>(elements(layer.output));
    if (own >= 0) outputs.forward[static_cast<std::size_t>(own)].add(i);
    if (own >= 0 && backward_reads_output(layer.kind)) outputs.backward[static_cast<std::size_t>(own)].add(i);
    for (const int input : layer.inputs) {
      const int from = input < 0 ? input : outputs.owner[static_cast<std::size_t>(input)];
      if (from < 0) continue;
      outputs.forward[static_cast<std::size_t>(from)].add(i);
      if (backward_reads_inputs(layer.kind)) outputs.backward[static_cast<std::size_t>(from)].add(i);
    }
  }
  return outputs;
}

/// What is there while a layer runs.
/// @param early  layers before its first reader, in the order of the pass, by which an output is there
double alive(const Outputs& outputs, const std::vector<Readers>& readers, int layer, int early) {
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
  const std::vector<double> errors = alive_error_signals(model, options);
  const double all_errors = freed ? 0 : kept_error_signals(model, options);
  WorkingSet worst;
  for (int i = static_cast<int>(model.layers.size()) - 1; i >= 0; --i) {
    const auto at = static_cast<std::size_t>(i);
    const double inside = internal_elements(model.layers[at]);
    const double before = i > 0 ? internal_elements(model.layers[at - 1]) : 0;
    const WorkingSet forward{alive(outputs, outputs.forward, i, 0) + inside, all_errors};
    const WorkingSet backward{alive(outputs, outputs.backward, i, 1) + inside + before,
                              freed ? errors[at] : all_errors};
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
    double sum = is_loss(layer.kind) ? 0 : internal_elements(layer);  // a loss goes back at once
    for (const int input : layer.inputs) {
      const int from = input < 0 ? input : outputs.owner[static_cast<std::size_t>(input)];
      if (from < 0 || from == outputs.owner[i] || !done.insert(from).second) continue;
      const auto at = static_cast<std::size_t>(from);
      if (outputs.backward[at].last >= 0) sum += outputs.elements[at];
    }
    copied.push_back(sum);
  }
  return copied;
}

}  // namespace stepcast
