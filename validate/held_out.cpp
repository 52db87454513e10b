#include "validate/held_out.hpp"

#include <algorithm>
#include <cmath>

namespace stepcast {
namespace {

constexpr std::int64_t kLargestBatch = 250;

/// The largest that divides the samples, so that each counts once.
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

HeldOut::HeldOut(Backend& backend, const Model& model, const LearningTask& task, const Dataset& data,
                 std::int64_t samples)
    : task_(task),
      batches_(samples / test_batch(samples)),
      network_(backend, without_dropout(model), {.batch = test_batch(samples)}),
      data_(data, task.form, {.batch = test_batch(samples)}) {}

Score HeldOut::score(const Parameters& parameters, const std::function<void()>& beat) {
  write_parameters(network_, parameters);
  data_.begin_again();
  Score sum;
  for (std::int64_t i = 0; i < batches_; ++i) {
    const Batches::Batch& batch = data_.next();
    network_.input().write(batch.inputs);
    network_.kernel(task_.loss_layer).targets()->write(batch.targets);
    for (std::size_t layer = 0; layer < network_.model().layers.size(); ++layer) {
      if (network_.has(layer, Pass::forward)) network_.run(layer, Pass::forward);
    }
    sum.loss += network_.loss() / static_cast<double>(batches_);
    sum.accuracy += right_share(batch) / static_cast<double>(batches_);
    beat();
  }
  return sum;
}

double HeldOut::right_share(const Batches::Batch& batch) {
  if (task_.form.classes == 0) return NAN;
  const Layer& loss = network_.model().layers[task_.loss_layer];
  const bool softmax = loss.kind == LayerKind::softmax_cross_entropy;
  const auto from = static_cast<std::size_t>(loss.inputs.front());
  const std::vector<float> values = network_.kernel(from).output().read();
  const std::size_t width = softmax ? static_cast<std::size_t>(task_.form.classes) : 1;
  std::size_t right = 0;
  for (std::size_t row = 0; row < batch.targets.size(); ++row) {
    const auto begin = values.begin() + static_cast<std::ptrdiff_t>(row * width);
    const auto end = begin + static_cast<std::ptrdiff_t>(width);
    const auto found =
        softmax ? std::max_element(begin, end) - begin : static_cast<std::ptrdiff_t>(*begin > 0);
    right += static_cast<float>(found) == batch.targets[row] ? 1 : 0;
  }
  return static_cast<double>(right) / static_cast<double>(batch.targets.size());
}

}  // namespace stepcast
