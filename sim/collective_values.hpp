#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <tuple>
#include <vector>

#include "strategies/plan.hpp"

namespace stepcast {

/// The values of collectives in a simulation that learns. The n-th call of every rank of a group is the same
/// collective; when the last has called, the schedule is played on the buffers of all of them.
class CollectiveValues {
 public:
  explicit CollectiveValues(const Plan& plan) : plan_(plan) {}

  /// @param place  of the rank among those of the collective's communicator
  void join(int collective, std::size_t call, int place, std::span<float> buffer);

 private:
  struct Meeting {
    std::vector<std::span<float>> buffers;  ///< by rank of the group
    int joined = 0;
  };

  void play(int collective, int group, std::vector<std::span<float>> buffers);
  const Schedule& schedule(int collective);

  const Plan& plan_;
  std::map<std::tuple<int, int, std::size_t>, Meeting> meetings_;  ///< by communicator, group and call
  std::map<int, std::shared_ptr<const Schedule>> schedules_;       ///< by collective
};

}  // namespace stepcast
