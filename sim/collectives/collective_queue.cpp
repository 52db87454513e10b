#include "sim/collectives/collective_queue.hpp"

#include <stdexcept>

#include "core/expects.hpp"

namespace stepcast {

CollectiveQueue::CollectiveQueue(SimNetwork& network, Options options)
    : network_(network), options_(std::move(options)) {
  stream_busy_.assign(options_.streams, false);
}

void CollectiveQueue::join(std::size_t call, int members, CollectiveId collective, Bytes buffer,
                           std::shared_ptr<SimOperation> operation, WorkClock& clock) {
  expects(call >= first_, "a call that has not ended");
  while (call >= first_ + collectives_.size())
    collectives_.push_back({collective, buffer, 0, false, false, false, {}});
  Collective& joined = collectives_[call - first_];
  if (joined.id != collective) throw std::logic_error("workers of one group called different collectives");
  joined.waiting.push_back({std::move(operation), &clock});
  joined.joined += members;
  if (joined.joined == options_.members) all_joined(call);
}

void CollectiveQueue::all_joined(std::size_t index) {
  Collective& collective = collectives_[index - first_];
  const double wait = options_.wait ? options_.wait(collective.id).value : 0;
  if (wait <= 0) {
    collective.ready = true;
    return start_ready();
  }
  Engine& engine = network_.engine();
  engine.at(engine.now() + wait, [this, index] {
    collectives_[index - first_].ready = true;
    start_ready();
  });
}

void CollectiveQueue::start_ready() {
  for (std::size_t i = 0; i < collectives_.size() && running_ < options_.in_flight; ++i) {
    const Collective& collective = collectives_[i];
    if (!collective.ready) return;
    const std::size_t stream = (first_ + i) % stream_busy_.size();
    if (!collective.started && !stream_busy_[stream]) start(first_ + i);
  }
}

void CollectiveQueue::slow_down(const Collective& collective, int change) {
  for (const Waiting& worker : collective.waiting)
    options_.load ? worker.clock->load(change) : worker.clock->collective(change);
}

void CollectiveQueue::start(std::size_t index) {
  Collective& collective = collectives_[index - first_];
  Engine& engine = network_.engine();
  const double started = engine.now();
  collective.started = true;
  stream_busy_[index % stream_busy_.size()] = true;
  ++running_;
  const PatternId pattern = options_.pattern(collective.id);
  if (!pattern.exists()) return engine.at(started, [this, index, started] { finish(index, started); });
  slow_down(collective, +1);
  network_.start_pattern(pattern, collective.buffer, options_.segments, [this, index, started] {
    slow_down(collectives_[index - first_], -1);
    finish(index, started);
  });
}

/// Adds a span for every recorded member.
void CollectiveQueue::add_spans(const Collective& collective, int stream, double started) {
  if (timeline == nullptr) return;
  Span span;
  span.kind = options_.load ? Span::Kind::load : Span::Kind::collective;
  span.name = options_.load ? timeline->name("load") : 0;
  span.start = started;
  span.end = network_.engine().now();
  span.stream = options_.first_stream + stream;
  span.collective = options_.load ? -1 : static_cast<int>(collective.id.index());
  span.bytes = collective.buffer.value;
  for (const Waiting& member : collective.waiting) {
    if (!member.operation->record) continue;
    span.issued = member.operation->record->issued;
    for (const int rank : member.operation->record->ranks) {
      span.rank = rank;
      timeline->add(span);
    }
  }
}

void CollectiveQueue::finish(std::size_t index, double started) {
  const int stream = index % stream_busy_.size();
  busy_seconds_ += network_.engine().now() - started;
  add_spans(collectives_[index - first_], stream, started);
  stream_busy_[stream] = false;
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
    if (OperationRecord* record = waiting_worker.operation->record.get()) {
      record->started = started;
      record->arrived = network_.engine().now();
    }
    waiting_worker.operation->complete();
  }
}

}  // namespace stepcast
