#include "runtime/memory/network_passes.hpp"

#include "strategies/model_parallel/layer_segments.hpp"

namespace stepcast {
namespace {

void run(Network& network, std::size_t layer, Pass pass) {
  if (network.has(layer, pass)) network.run(layer, pass);
}

/// True for a layer whose error signals are summed over ranks while its weight gradients are computed.
bool has_columns(const Network& network, std::size_t layer) {
  const SharedPart* part = network.shared_part();
  return part != nullptr && part->shares[layer] && part->shares[layer]->form == LayerShare::Form::columns;
}

}  // namespace

void run_layers(Network& network, Work pass, LayerRange layers) {
  const auto first = static_cast<std::size_t>(layers.first), last = static_cast<std::size_t>(layers.last);
  switch (pass) {
    case Work::forward:
      for (std::size_t i = first; i < last; ++i) run(network, i, Pass::forward);
      break;
    case Work::backward:
      for (std::size_t i = last; i-- > first;) {
        run(network, i, Pass::backward_data);
        run(network, i, Pass::backward_weights);
      }
      break;
    case Work::update:
      network.begin_update();
      for (std::size_t i = first; i < last; ++i) run(network, i, Pass::update);
      break;
  }
}

void run_segments(Network& network, Work pass, LayerRange segments) {
  for (int segment = segments.first; pass == Work::forward && segment < segments.last; ++segment) {
    if (segment % kSegmentsPerLayer == 0)
      run(network, static_cast<std::size_t>(segment / kSegmentsPerLayer), Pass::forward);
  }
  for (int segment = segments.last; pass == Work::backward && segment-- > segments.first;) {
    const auto layer = static_cast<std::size_t>(segment / kSegmentsPerLayer);
    const int last = has_columns(network, layer) ? 0 : 1;
    if (segment % kSegmentsPerLayer == 1) run(network, layer, Pass::backward_data);
    if (segment % kSegmentsPerLayer == last) run(network, layer, Pass::backward_weights);
  }
}

}  // namespace stepcast
