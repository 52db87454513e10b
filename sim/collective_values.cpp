#include "sim/collective_values.hpp"

#include "strategies/collectives/play_values.hpp"
#include "strategies/planned_schedule.hpp"

namespace stepcast {

const Schedule& CollectiveValues::schedule(int number) {
  std::shared_ptr<const Schedule>& known = schedules_[number];
  if (known) return *known;
  const Collective& collective = plan_.collectives.at(static_cast<std::size_t>(number));
  const Communicator& communicator =
      plan_.communicators.at(static_cast<std::size_t>(collective.communicator));
  const Group group{communicator.size, communicator.ranks_per_node};
  AllReduceChoice choice = communicator.all_reduce;
  // Which algorithm sums decides about rounding alone.
  if (choice.algorithm == Algorithm::automatic) choice = candidates(choice, group).front();
  return *(known = schedule_of(collective, choice, group));
}

void CollectiveValues::play(int number, int group, std::vector<std::span<float>> buffers) {
  const Collective& collective = plan_.collectives[static_cast<std::size_t>(number)];
  const Communicator& communicator = plan_.communicators[static_cast<std::size_t>(collective.communicator)];
  if (collective.by_group) {
    const int groups = communicator.groups(), part = (group + 1) % groups;
    for (std::span<float>& buffer : buffers) {
      const auto elements = static_cast<std::int64_t>(buffer.size());
      const Slice slice{part_begin(elements, groups, part), part_begin(elements, groups, part + 1)};
      buffer = buffer.subspan(static_cast<std::size_t>(slice.begin), static_cast<std::size_t>(slice.size()));
    }
  }
  if (communicator.size > 1) play_values(schedule(number), buffers);
}

void CollectiveValues::join(int collective, std::size_t call, int place, std::span<float> buffer) {
  const int number = plan_.collectives.at(static_cast<std::size_t>(collective)).communicator;
  const int size = plan_.communicators[static_cast<std::size_t>(number)].size, group = place / size;
  const auto meeting = meetings_.try_emplace({number, group, call}).first;
  meeting->second.buffers.resize(static_cast<std::size_t>(size));
  meeting->second.buffers[static_cast<std::size_t>(place % size)] = buffer;
  if (++meeting->second.joined < size) return;
  play(collective, group, std::move(meeting->second.buffers));
  meetings_.erase(meeting);
}

}  // namespace stepcast
