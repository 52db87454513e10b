#include "validate/part_devices.hpp"

#include "validate/roles.hpp"

namespace stepcast {

PartDevices::PartDevices(Backend& backend, int rank, CapturedParts captured)
    : backend_(backend), rank_(rank) {
  for (auto& [trace, one] : captured) {
    if (one.part.of_samples)
      cuts_[trace] = {std::move(one.part.of_samples), std::move(one.network)};
    else
      shared_[trace] = {std::move(one.part.of_layers), std::move(one.network)};
  }
}

std::unique_ptr<RankDevice> PartDevices::device(const Experiment& experiment,
                                                const std::filesystem::path& trace) {
  if (role_of(experiment.plan, rank_) < 0) return nullptr;
  const NetworkSharing::Form form = experiment.plan.sharing.form;
  if (form == NetworkSharing::Form::positions) return with_part_of_samples(experiment, trace);
  return form == NetworkSharing::Form::blocks ? with_part_of_layers(experiment, trace) : nullptr;
}

std::unique_ptr<RankDevice> PartDevices::with_part_of_samples(const Experiment& experiment,
                                                              const std::filesystem::path& trace) {
  const NetworkSharing& sharing = experiment.plan.sharing;
  const int place = rank_ % device_count(sharing.cut.parts);
  CutNetwork& cut = cuts_[trace];
  if (cut.network == nullptr) {
    NetworkOptions options{.data_seed = static_cast<std::uint64_t>(1 + rank_)};
    options.optimizer = {.learning_rate = 1e-3 / experiment.plan.workers};
    cut = cut_network(backend_, experiment.model, sharing, place, options);
  }
  return cut_device(cut, experiment.model, sharing, place);
}

std::unique_ptr<RankDevice> PartDevices::with_part_of_layers(const Experiment& experiment,
                                                             const std::filesystem::path& trace) {
  const NetworkSharing& sharing = experiment.plan.sharing;
  SharedNetwork& shared = shared_[trace];
  if (shared.network == nullptr) {
    const NetworkOptions options{.data_seed = static_cast<std::uint64_t>(1 + rank_ / sharing.ways)};
    shared = shared_network(backend_, experiment.model, sharing, rank_ % sharing.ways, options);
  }
  DeviceLearning learning;
  learning.summed = experiment.plan.summed_gradients;
  return tensor_device(shared, std::move(learning));
}

}  // namespace stepcast
