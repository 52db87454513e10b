#include "runtime/learning/joint_network.hpp"

#include <algorithm>
#include <functional>
#include <span>
#include <stdexcept>

namespace stepcast {

GroupNetwork::GroupNetwork(Backend& backend, const Model& model, const NetworkOptions& options, int ranks)
    : network_(backend, model, options), passes_(ranks, 0), updates_(ranks, 0) {}

void GroupNetwork::start_pass(int place, Work pass, LayerRange segments) {
  if (++passes_.at(place) <= passes_run_) return;
  ++passes_run_;
  const bool begins = pass == Work::forward && segments.first == 0 && !mini_batch_begun_;
  if (begins && next_batch_) next_batch_();
  if (segments.first == 0) mini_batch_begun_ = pass == Work::forward;
  run_segments(network_, pass, segments);
}

namespace {

std::span<float> gradients_of(Network& network) {
  const ParameterView& all = network.all_parameters();
  return {all.gradient, all.elements};
}

/// Gives all networks the sum of their gradients.
void sum_gradients(GroupNetworks& groups) {
  if (groups.size() == 1) return;
  const std::span<float> first = gradients_of(groups.begin()->second->network());
  std::vector<float> sum(first.size(), 0);
  for (const auto& [number, group] : groups)
    std::ranges::transform(sum, gradients_of(group->network()), sum.begin(), std::plus());
  for (const auto& [number, group] : groups) std::ranges::copy(sum, gradients_of(group->network()).begin());
}

}  // namespace

void GroupNetwork::start_update(int place, GroupNetworks& groups,
                                const std::function<void(Network&, std::int64_t)>& set_rate) {
  if (++updates_.at(place) <= updates_run_) return;
  ++updates_run_;
  if (sums_ < updates_run_) {
    for (const auto& [number, group] : groups) {
      if (group->passes_run_ != passes_run_)
        throw std::logic_error("GroupNetwork: a gradient is summed before its backward pass");
      group->sums_ = updates_run_;
    }
    sum_gradients(groups);
  }
  set_rate(network_, updates_run_);
  network_.begin_update();
  network_.update_layers(0, network_.model().layers.size());
}

}  // namespace stepcast
