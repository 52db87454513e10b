#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/error.hpp"
#include "runtime/learning/learning_shard.hpp"

namespace stepcast {
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

namespace {

constexpr std::int64_t kLargestBatch = 250;

/// The largest batch up to kLargestBatch that divides the number of samples, so that each sample counts once.
std::int64_t test_batch(std::int64_t samples) {
  std::int64_t batch = std::min(samples, kLargestBatch);
  while (samples % batch != 0) --batch;
  return batch;
}

Model without_dropout(Model model) {
  for (Layer& layer : model.layers) {
    if (layer.kind == LayerKind::dropout) layer.coefficient = 0;
  }
  return model;
}

}  // namespace

Evaluator::Evaluator(Backend& backend, const Model& model, const LearningTask& task, const Dataset& data,
                     std::int64_t samples)
    : task_(task),
      batches_(samples / test_batch(samples)),
      network_(backend, without_dropout(model), {.batch = test_batch(samples)}),
      data_(data, task.form, {.batch = test_batch(samples)}) {}

Score Evaluator::score(const Parameters& parameters, const std::function<void()>& on_progress) {
  write_parameters(network_, parameters);
  data_.restart();
  Score sum;
  for (std::int64_t i = 0; i < batches_; ++i) {
    const Batches::Batch& batch = data_.next();
    network_.input().write(batch.inputs);
    network_.kernel(task_.loss_layer).targets()->write(batch.targets);
    for (std::size_t layer = 0; layer < network_.model().layers.size(); ++layer) {
      if (network_.has(layer, Pass::forward)) network_.run(layer, Pass::forward);
    }
    sum.loss += network_.loss() / static_cast<double>(batches_);
    sum.accuracy += accuracy(batch) / static_cast<double>(batches_);
    on_progress();
  }
  return sum;
}

double Evaluator::accuracy(const Batches::Batch& batch) {
  if (task_.form.classes == 0) return NAN;
  const Layer& loss = network_.model().layers[task_.loss_layer];
  const bool softmax = loss.kind == LayerKind::softmax_cross_entropy;
  const auto from = static_cast<std::size_t>(loss.inputs.front());
  const std::vector<float> values = network_.kernel(from).output().read();
  const std::size_t width = softmax ? static_cast<std::size_t>(task_.form.classes) : 1;
  std::size_t correct = 0;
  for (std::size_t row = 0; row < batch.targets.size(); ++row) {
    const auto begin = values.begin() + static_cast<std::ptrdiff_t>(row * width);
    const auto end = begin + static_cast<std::ptrdiff_t>(width);
    const auto found =
        softmax ? std::max_element(begin, end) - begin : static_cast<std::ptrdiff_t>(*begin > 0);
    correct += static_cast<float>(found) == batch.targets[row] ? 1 : 0;
  }
  return static_cast<double>(correct) / static_cast<double>(batch.targets.size());
}

}  // namespace stepcast
