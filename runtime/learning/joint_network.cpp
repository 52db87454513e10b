#include "runtime/learning/joint_network.hpp"

#include <algorithm>

#include "runtime/devices/rank_device.hpp"

namespace stepcast {

JointNetwork::JointNetwork(Backend& backend, const Model& model, const NetworkOptions& options, int machines)
    : network_(backend, model, options),
      passes_(static_cast<std::size_t>(machines), 0),
      updates_(static_cast<std::size_t>(machines), 0) {}

void JointNetwork::start_pass(int machine, Work pass, LayerRange segments) {
  const int call = ++passes_.at(static_cast<std::size_t>(machine));
  if (std::ranges::min(passes_) < call) return;
  if (pass == Work::forward && segments.first == 0 && next_batch_) next_batch_();
  run_segments(network_, pass, segments);
}

void JointNetwork::begin_update(int machine) {
  const int update = ++updates_.at(static_cast<std::size_t>(machine));
  if (update <= steps_) return;
  ++steps_;
  network_.begin_update();
}

}  // namespace stepcast
