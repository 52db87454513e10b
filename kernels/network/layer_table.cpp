#include "kernels/network/layer_table.hpp"

#include <fmt/format.h>

namespace stepcast {
namespace {

constexpr LayerTable<bool> kComputed{true, true, true, true, true, true, true, true, true, true,
                                     true, true, true, true, true, true, true, true, true, true};

}  // namespace

std::string lacking_kernel(const Model& model) {
  for (const Layer& layer : model.layers) {
    if (kComputed.of(layer.kind) && *lacking_form(layer) == '\0') continue;
    return fmt::format("there is no kernel for layer {} of kind {}{}", layer.name, to_string(layer.kind),
                       lacking_form(layer));
  }
  return "";
}

}  // namespace stepcast
