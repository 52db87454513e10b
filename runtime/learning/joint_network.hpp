#pragma once

#include <algorithm>
#include <cstdint>
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
      : network_(backend, model, options), passes_(machines, 0), updates_(machines, 0) {}

  Network& network() { return network_; }
  /// Called before each mini-batch.
  void set_next_batch(std::function<void()> next_batch) { next_batch_ = std::move(next_batch); }

  /// Enters a machine's call. The n-th pass of every machine is the same; the last machine's call runs it.
  /// @param pass  forward or backward; @param segments  of layers (layer_segments.hpp)
  void start_pass(int machine, Work pass, LayerRange segments) {
    const int call = ++passes_.at(machine);
    if (std::ranges::min(passes_) < call) return;
    if (pass == Work::forward && segments.first == 0 && next_batch_) next_batch_();
    run_segments(network_, pass, segments);
  }

  /// Enters the start of a machine's n-th update of its slice. The first machine's call counts a step of the
  /// network's optimizer.
  void begin_update(int machine) {
    const int update = ++updates_.at(machine);
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

/// The network of a group of ranks of one process that train synchronously (ModelPartition::Form::group).
///
/// All ranks of a group enter the same passes and updates in the same order, and change nothing in between.
/// So the first rank that starts a pass may run it for all, and parameters are up to date when any rank's
/// step ends.
class GroupNetwork {
 public:
  GroupNetwork(Backend& backend, const Model& model, const NetworkOptions& options, int ranks);

  Network& network() { return network_; }
  /// Called before each mini-batch.
  void set_next_batch(std::function<void()> next_batch) { next_batch_ = std::move(next_batch); }

  /// Enters a rank's call. The first rank's call of the n-th pass runs it.
  /// @param pass  forward or backward; @param segments  of layers (layer_segments.hpp)
  void start_pass(int place, Work pass, LayerRange segments);
  /// Enters a rank's update. The first call of the n-th update runs it with gradients summed over `groups`.
  /// It is called when the rank's sums of gradients are complete, so each of them has its gradient.
  /// @param set_rate  sets the learning rate of the update with this number, from 1
  void start_update(int place, std::map<int, std::unique_ptr<GroupNetwork>>& groups,
                    const std::function<void(Network&, std::int64_t)>& set_rate);

 private:
  Network network_;
  std::function<void()> next_batch_;
  std::vector<int> passes_, updates_;  ///< calls of each rank
  int passes_run_ = 0, updates_run_ = 0;
  int sums_ = 0;                   ///< updates for which the gradient is summed over the groups
  bool mini_batch_begun_ = false;  ///< between the forward and the backward pass of the first layer
};

using GroupNetworks = std::map<int, std::unique_ptr<GroupNetwork>>;  ///< by group

/// The networks that ranks of one process have in common.
struct JointNetworks {
  std::map<int, std::unique_ptr<JointNetwork>> replicas = {};  ///< by replica
  GroupNetworks groups = {};
};

}  // namespace stepcast
