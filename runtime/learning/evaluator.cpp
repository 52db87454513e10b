#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <stdexcept>

#include "core/error.hpp"
#include "runtime/devices/rank_shard.hpp"
#include "runtime/learning/adversaries.hpp"
#include "runtime/learning/learning_shard.hpp"

namespace stepcast {

namespace {

/// Calls visit(layer, index of the array in the layer, index of the array in the model) for all arrays in
/// order.
void for_each_array(const Model& model,
                    const std::function<void(std::size_t, std::size_t, std::size_t)>& visit) {
  std::size_t number = 0;
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    for (std::size_t k = 0; k < model.layers[i].parameters.size(); ++k) visit(i, k, number++);
  }
}

/// First rank of the stage that has a layer.
RankId first_rank_with(const Plan& plan, int layer) {
  const auto& runs = plan.partition.stages;
  const auto run = std::ranges::find_if(runs, [layer](const LayerRange& one) { return layer < one.last; });
  const auto stage = (run - runs.begin()) % plan.roles.size();
  return plan.roles[stage].first_rank;
}

}  // namespace

Parameters gather_tensor_parallel_parameters(Transport& transport, const Model& model,
                                             const ModelPartition& partition, const Parameters& own) {
  if (!transport.is_rank_0()) {
    for (const std::vector<float>& array : own) send(transport, RankId{0}, array.data(), array.size());
    return {};
  }
  Parameters whole(own.size());
  for (int place = 0; place < partition.ways; ++place) {
    const SharedPart part = tensor_shard(model, partition, place);
    for_each_array(model, [&](std::size_t layer, std::size_t k, std::size_t number) {
      std::vector<float> values = own[number];
      if (place > 0) receive(transport, RankId(place), values.data(), values.size());
      whole[number].resize(model.layers[layer].parameters[k].elements());
      insert_part(values, part, layer, k, whole[number]);
    });
  }
  return whole;
}

Parameters gather_pipeline_parameters(Transport& transport, const Model& model, const Plan& plan,
                                      const Parameters& own) {
  const int ways = plan.partition.parts(), me = transport.rank().value;
  std::vector<SharedPart> parts;
  for (int place = 0; place < ways; ++place) parts.push_back(tensor_shard(model, plan.partition, place));
  Parameters whole(own.size());
  for_each_array(model, [&](std::size_t layer, std::size_t k, std::size_t number) {
    const int first = first_rank_with(plan, layer).value;
    if (me == 0) whole[number].resize(model.layers[layer].parameters[k].elements());
    for (int place = 0; place < ways; ++place) {
      const SharedPart& part = parts[place];
      std::vector<float> values = own[number];
      const std::int64_t count = part.model.layers[layer].parameters[k].elements();
      values.resize(count);
      if (me > 0 && me == first + place) send(transport, RankId{0}, values.data(), count);
      if (me > 0) continue;
      if (first + place > 0) receive(transport, RankId(first + place), values.data(), count);
      insert_part(values, part, layer, k, whole[number]);
    }
  });
  return whole;
}

Parameters shard_of_parameters(const Parameters& whole, const Model& model, const ModelPartition& partition,
                               int place) {
  const SharedPart part = tensor_shard(model, partition, place);
  Parameters own(whole.size());
  for_each_array(model, [&](std::size_t layer, std::size_t k, std::size_t number) {
    own[number] = extract_part(whole[number], part, layer, k);
  });
  return own;
}

void BatchWriter::write(const std::vector<float>& values, Tensor& to) {
  DeviceMemory* device = backend_.device_memory();
  if (device == nullptr) return to.write(values);
  if (values.size() != to.elements())
    throw std::invalid_argument(
        "BatchWriter::write: the number of values differs from the tensor's elements");
  StagingPair& staging = staging_[&to];
  if (staging.host == nullptr) {
    staging = {device->host_memory(values.size()), device->allocate(values.size()), nullptr};
    staging.read = device->record_event();  // the device zeroes new memory first
  }
  device->wait(staging.read);
  std::copy(values.begin(), values.end(), staging.host.get());
  device->to_device(staging.host.get(), staging.device.get(), values.size());
  backend_.copy_in(staging.device.get(), to);
  staging.read = device->record_event();
}

void BatchWriter::write(const Batches::Batch& batch, std::size_t loss_layer, Network& network) {
  write(batch.inputs, network.input());
  if (network.contains(loss_layer)) write(batch.targets, *network.kernel(loss_layer).targets());
}

namespace {

/// Makes `task` that of a generator and a discriminator.
void divide(const Model& model, const std::string& first, LearningTask& task) {
  const auto refuse = [&](const std::string& why) {
    throw InputError(fmt::format("learning.discriminator: {}: {}", first, why));
  };
  const auto found = std::ranges::find(model.layers, first, &Layer::name);
  if (found == model.layers.end()) refuse(fmt::format("{} has no layer of this name", model.name));
  const int border = found - model.layers.begin();
  if (border == 0) refuse("expected layers before it, which are the generator");
  for (int i = border; i < std::ssize(model.layers); ++i) {
    const Layer& layer = model.layers[i];
    const int earliest = i == border ? border - 1 : border;
    if (std::ranges::any_of(layer.inputs, [&](int from) { return from < earliest; }))
      refuse(fmt::format("{} reads a layer of the generator that is not its last layer", layer.name));
    if (layer.kind == LayerKind::batch_norm)
      refuse(fmt::format("{} mixes real and generated samples; each must count alone", layer.name));
  }
  const Layer& loss = model.layers[task.loss_layer];
  if (loss.kind != LayerKind::sigmoid_cross_entropy || elements(loss.input) != 1)
    refuse("expected a discriminator with sigmoid_cross_entropy of one number");
  task.discriminator = static_cast<std::size_t>(border);
  task.form = {.input = found->input, .targets = {0}, .classes = 1};
}

}  // namespace

LearningTask learning_task(const Model& model, const std::optional<std::string>& discriminator) {
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
  if (discriminator) divide(model, *discriminator, task);
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

/// The layers that a score needs: all, or those of a generator.
PartOptions evaluated_part(const LearningTask& task) {
  PartOptions part;
  if (task.discriminator) part.last = *task.discriminator;
  return part;
}

}  // namespace

Evaluator::Evaluator(Backend& backend, const Model& model, const LearningTask& task, const Dataset& data,
                     std::int64_t samples)
    : task_(task),
      batches_(samples / test_batch(samples)),
      network_(backend, without_dropout(model), {.batch = test_batch(samples), .part = evaluated_part(task)}),
      data_(data, task.form, {.batch = test_batch(samples)}) {}

Score Evaluator::score(const Parameters& parameters, const std::function<void()>& on_progress) {
  write_parameters(network_, parameters);
  data_.restart();
  if (task_.discriminator) return generator_score(on_progress);
  Score sum;
  for (std::int64_t i = 0; i < batches_; ++i) {
    const Batches::Batch& batch = data_.next();
    network_.input().write(batch.inputs);
    network_.kernel(task_.loss_layer).targets()->write(batch.targets);
    run_forward();
    sum.loss += network_.loss() / batches_;
    sum.accuracy += accuracy(batch) / batches_;
    on_progress();
  }
  return sum;
}

void Evaluator::run_forward() {
  for (std::size_t layer = 0; layer < network_.model().layers.size(); ++layer) {
    if (network_.has(layer, Pass::forward)) network_.run(layer, Pass::forward);
  }
}

Score Evaluator::generator_score(const std::function<void()>& on_progress) {
  constexpr std::uint64_t kSeed = 0;  // of the generator's inputs, the same in every evaluation
  const std::int64_t batch = network_.input().shape().front();
  const std::size_t each = sample_numbers(network_.model().input);
  std::vector<float> real, generated;
  for (std::int64_t i = 0; i < batches_; ++i) {
    const std::vector<float>& samples = data_.next().inputs;
    real.insert(real.end(), samples.begin(), samples.end());
    network_.input().write(generator_inputs(kSeed, i * batch, batch, each));
    run_forward();
    const std::vector<float> made = network_.kernel(*task_.discriminator - 1).output().read();
    generated.insert(generated.end(), made.begin(), made.end());
    on_progress();
  }
  const std::size_t elements = sample_numbers(task_.form.input);
  return {energy_coefficient(generated, real, elements), NAN,
          low_energy_coefficient(generated, real, elements)};
}

double Evaluator::accuracy(const Batches::Batch& batch) {
  if (task_.form.classes == 0) return NAN;
  const Layer& loss = network_.model().layers[task_.loss_layer];
  const bool softmax = loss.kind == LayerKind::softmax_cross_entropy;
  const std::size_t from = loss.inputs.front();
  const std::vector<float> values = network_.kernel(from).output().read();
  const std::size_t width = softmax ? task_.form.classes : 1;
  std::size_t correct = 0;
  for (std::size_t row = 0; row < batch.targets.size(); ++row) {
    const auto begin = values.begin() + (row * width);
    const auto end = begin + width;
    const auto found =
        softmax ? std::max_element(begin, end) - begin : static_cast<std::ptrdiff_t>(*begin > 0);
    correct += found == batch.targets[row] ? 1 : 0;
  }
  return 1.0 * correct / batch.targets.size();
}

}  // namespace stepcast
