#include "validate/network_passes.hpp"

namespace stepcast {
namespace {

void run(Network& network, std::size_t layer, Pass pass) {
  if (network.has(layer, pass)) network.run(layer, pass);
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

}  // namespace stepcast
