#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "kernels/network/network.hpp"
#include "runtime/devices/rank_device.hpp"
#include "strategies/program/worker.hpp"

namespace stepcast {

/// The network of a replica whose machines are ranks of one process (ModelPartition::Form::machines).
///
/// The machines of a replica wait for each other at every layer whose activations they exchange, so together
/// they compute what one machine with the whole network would compute. Therefore they have one network, and a
/// pass runs when the last of them starts it. No machine changes its slice of the parameters before that: it
/// has waited for the others at the end of the backward pass.
class JointNetwork {
 public:
  JointNetwork(Backend& backend, const Model& model, const NetworkOptions& options, int machines)
      : network_(backend, model, options),
        passes_(static_cast<std::size_t>(machines), 0),
        updates_(static_cast<std::size_t>(machines), 0) {}

  Network& network() { return network_; }
  /// Called before each mini-batch.
  void set_next_batch(std::function<void()> next_batch) { next_batch_ = std::move(next_batch); }

  /// Enters a machine's call. The n-th pass of every machine is the same; the last machine's call runs it.
  /// @param pass  forward or backward; @param segments  of layers (layer_segments.hpp)
  void start_pass(int machine, Work pass, LayerRange segments) {
    const int call = ++passes_.at(static_cast<std::size_t>(machine));
    if (std::ranges::min(passes_) < call) return;
    if (pass == Work::forward && segments.first == 0 && next_batch_) next_batch_();
    run_segments(network_, pass, segments);
  }

  /// Enters the start of a machine's n-th update of its slice. The first machine's call counts a step of the
  /// network's optimizer.
  void begin_update(int machine) {
    const int update = ++updates_.at(static_cast<std::size_t>(machine));
    if (update <= steps_) return;
    ++steps_;
    network_.begin_update();
  }

 private:
  Network network_;
  std::function<void()> next_batch_;
  std::vector<int> passes_, updates_;  ///< calls of each machine
  int steps_ = 0;                      ///< of the optimizer
};

using JointNetworks = std::map<int, std::unique_ptr<JointNetwork>>;  ///< by replica

}  // namespace stepcast
