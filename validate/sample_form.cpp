#include "validate/sample_form.hpp"

#include <fmt/format.h>

#include "core/error.hpp"

namespace stepcast {
namespace {

bool is_loss(LayerKind kind) {
  return kind == LayerKind::softmax_cross_entropy || kind == LayerKind::sigmoid_cross_entropy ||
         kind == LayerKind::mean_squared_error;
}

}  // namespace

LearningTask learning_task(const Model& model) {
  LearningTask task;
  int losses = 0;
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    const Layer& layer = model.layers[i];
    if (!is_loss(layer.kind)) continue;
    ++losses;
    task.loss_layer = i;
    task.form.targets = layer.input;
    task.form.classes = layer.kind == LayerKind::sigmoid_cross_entropy ? 2 : 0;
    if (layer.kind != LayerKind::softmax_cross_entropy) continue;
    task.form.classes = layer.input.back();
    task.form.targets.back() = 1;
  }
  if (losses != 1)
    throw InputError(fmt::format("learning: model {} has {} losses, expected one", model.name, losses));
  task.form.input = model.input;
  return task;
}

}  // namespace stepcast
