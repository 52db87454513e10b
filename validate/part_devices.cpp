#include "validate/part_devices.hpp"

#include "validate/roles.hpp"

namespace stepcast {

std::unique_ptr<RankDevice> PartDevices::device(const Experiment& experiment) {
  if (role_of(experiment.plan, rank_) < 0) return nullptr;
  const NetworkSharing::Form form = experiment.plan.sharing.form;
  if (form == NetworkSharing::Form::positions) return with_part_of_samples(experiment);
  return form == NetworkSharing::Form::blocks ? with_part_of_layers(experiment) : nullptr;
}

std::unique_ptr<RankDevice> PartDevices::with_part_of_samples(const Experiment& experiment) {
  const NetworkSharing& sharing = experiment.plan.sharing;
  const int place = rank_ % device_count(sharing.cut.parts);
  NetworkOptions options{.data_seed = static_cast<std::uint64_t>(1 + rank_)};
  options.optimizer = {.learning_rate = 1e-3 / experiment.plan.workers};
  cuts_.push_back(cut_network(backend_, experiment.model, sharing, place, options));
  return cut_device(cuts_.back(), experiment.model, sharing, place);
}

std::unique_ptr<RankDevice> PartDevices::with_part_of_layers(const Experiment& experiment) {
  const NetworkSharing& sharing = experiment.plan.sharing;
  const NetworkOptions options{.data_seed = static_cast<std::uint64_t>(1 + rank_ / sharing.ways)};
  shared_.push_back(shared_network(backend_, experiment.model, sharing, rank_ % sharing.ways, options));
  DeviceLearning learning;
  learning.summed = experiment.plan.summed_gradients;
  return tensor_device(shared_.back(), std::move(learning));
}

}  // namespace stepcast
