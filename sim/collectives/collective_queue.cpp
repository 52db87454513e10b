#include "sim/collectives/collective_queue.hpp"

#include <stdexcept>

#include "strategies/collectives/execute_on_values.hpp"
#include "strategies/plan/communicator.hpp"

namespace stepcast {

CollectiveQueue::CollectiveQueue(SimNetwork& network, Options options)
    : network_(network), options_(std::move(options)) {
  stream_busy_.assign(static_cast<std::size_t>(options_.streams), false);
}

void CollectiveQueue::join(std::size_t call, int members, CollectiveId collective, Bytes buffer,
                           std::shared_ptr<SimOperation> operation, WorkClock& clock) {
  while (call >= first_ + collectives_.size())
    collectives_.push_back({collective, buffer, 0, false, false, {}});
  Collective& joined = collectives_[call - first_];
  if (joined.id != collective) throw std::logic_error("workers of one group called different collectives");
  joined.waiting.push_back({std::move(operation), &clock});
  joined.joined += members;
  if (joined.joined == options_.members) start_ready();
}

void CollectiveQueue::start_ready() {
  for (std::size_t i = 0; i < collectives_.size() && running_ < options_.in_flight; ++i) {
    const Collective& collective = collectives_[i];
    if (collective.joined < options_.members) return;
    const std::size_t stream = (first_ + i) % stream_busy_.size();
    if (!collective.started && !stream_busy_[stream]) start(first_ + i);
  }
}

void CollectiveQueue::slow_down(const Collective& collective, int change) {
  if (options_.load) return;
  for (const Waiting& waiting_worker : collective.waiting) waiting_worker.clock->communication(change);
}

void CollectiveQueue::start(std::size_t index) {
  Collective& collective = collectives_[index - first_];
  Engine& engine = network_.engine();
  const double started = engine.now();
  collective.started = true;
  stream_busy_[index % stream_busy_.size()] = true;
  ++running_;
  const int pattern = options_.pattern(collective.id);
  if (pattern < 0) return engine.at(started, [this, index, started] { finish(index, started); });
  slow_down(collective, +1);
  network_.start_pattern(pattern, collective.buffer, options_.segments, [this, index, started] {
    slow_down(collectives_[index - first_], -1);
    finish(index, started);
  });
}

void CollectiveQueue::show_on(int process, int first_track) {
  options_.process = process;
  options_.first_track = first_track;
}

void CollectiveQueue::add_span(std::size_t index, int stream, double started) {
  const double now = network_.engine().now();
  if (timeline == nullptr || now <= started) return;
  timeline->spans.push_back({options_.name + " " + std::to_string(index),
                             options_.load ? "loading" : "communication", options_.process,
                             options_.first_track + stream, started, now});
}

void CollectiveQueue::finish(std::size_t index, double started) {
  const int stream = static_cast<int>(index % stream_busy_.size());
  busy_seconds_ += network_.engine().now() - started;
  add_span(index, stream, started);
  stream_busy_[static_cast<std::size_t>(stream)] = false;
  --running_;
  const auto waiting = std::move(collectives_[index - first_].waiting);
  collectives_[index - first_].finished = true;
  while (!collectives_.empty() && collectives_.front().finished) {
    collectives_.pop_front();
    ++first_;
  }
  start_ready();
  for (const Waiting& waiting_worker : waiting) {
    waiting_worker.operation->end = waiting_worker.clock->work_now();
    waiting_worker.operation->complete();
  }
}

const Schedule& CollectiveValues::schedule(CollectiveId id) {
  std::shared_ptr<const Schedule>& schedule = schedules_[id];
  if (schedule) return *schedule;
  const Collective& collective = plan_.collectives.at(id.index());
  const Communicator& communicator = communicator_of(plan_, collective);
  const Group group{communicator.size, communicator.ranks_per_node};
  const auto chosen = choices_.find(id);
  AllReduceChoice choice = chosen == choices_.end() ? communicator.all_reduce : chosen->second;
  // No algorithm was chosen for a buffer of 0 bytes, and any algorithm leaves it as it is.
  if (choice.algorithm == Algorithm::automatic) choice = candidates(choice, group).front();
  return *(schedule = schedule_of(collective, choice, group));
}

void CollectiveValues::execute(CollectiveId id, int group, std::vector<std::span<float>> buffers) {
  const Collective& collective = plan_.collectives[id.index()];
  const Communicator& communicator = communicator_of(plan_, collective);
  if (collective.by_group) {
    const int groups = communicator.groups(), slice_index = (group + 1) % groups;
    for (std::span<float>& buffer : buffers) {
      const auto elements = static_cast<std::int64_t>(buffer.size());
      const Slice slice{part_begin(elements, groups, slice_index),
                        part_begin(elements, groups, slice_index + 1)};
      buffer = buffer.subspan(static_cast<std::size_t>(slice.begin), static_cast<std::size_t>(slice.size()));
    }
  }
  if (communicator.size > 1) execute_on_values(schedule(id), buffers);
}

void CollectiveValues::join(CollectiveId collective, std::size_t call, int position,
                            std::span<float> buffer) {
  const CommunicatorId communicator = plan_.collectives.at(collective.index()).communicator;
  const int size = plan_.communicators[communicator.index()].size, group = position / size;
  const auto pending = pending_.try_emplace({communicator, group, call}).first;
  pending->second.buffers.resize(static_cast<std::size_t>(size));
  pending->second.buffers[static_cast<std::size_t>(position % size)] = buffer;
  if (++pending->second.joined < size) return;
  execute(collective, group, std::move(pending->second.buffers));
  pending_.erase(pending);
}

}  // namespace stepcast
