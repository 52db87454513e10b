#include "sim/collective_queue.hpp"

#include <stdexcept>

namespace stepcast {

CollectiveQueue::CollectiveQueue(SimNetwork& network, ComputeClock& clock, Options options)
    : network_(network), clock_(clock), options_(std::move(options)) {
  stream_busy_.assign(static_cast<std::size_t>(options_.streams), false);
}

Pending CollectiveQueue::join(std::size_t call, int members, Bytes buffer) {
  while (call >= first_ + collectives_.size()) collectives_.push_back({buffer, 0, false, {}});
  Collective& collective = collectives_[call - first_];
  if (collective.buffer != buffer)
    throw std::logic_error("workers joined a collective with different buffers");
  auto operation = std::make_shared<SimOperation>();
  operation->kind = options_.kind;
  collective.waiting.push_back(operation);
  collective.joined += members;
  if (collective.joined == options_.members) start_ready();
  return operation;
}

void CollectiveQueue::start_ready() {
  for (std::size_t i = 0; i < collectives_.size() && running_ < options_.in_flight; ++i) {
    const Collective& collective = collectives_[i];
    if (collective.joined < options_.members) return;
    const std::size_t stream = (first_ + i) % stream_busy_.size();
    if (!collective.started && !stream_busy_[stream]) start(first_ + i);
  }
}

void CollectiveQueue::start(std::size_t index) {
  Collective& collective = collectives_[index - first_];
  Engine& engine = network_.engine();
  const double started = engine.now();
  collective.started = true;
  stream_busy_[index % stream_busy_.size()] = true;
  ++running_;
  const int pattern = options_.pattern(collective.buffer);
  if (pattern < 0) return engine.at(started, [this, index, started] { finish(index, started); });
  if (options_.kind == SimOperation::Kind::all_reduce) clock_.communication(+1);
  network_.play(pattern, collective.buffer, options_.segments, [this, index, started] {
    if (options_.kind == SimOperation::Kind::all_reduce) clock_.communication(-1);
    finish(index, started);
  });
}

void CollectiveQueue::finish(std::size_t index, double started) {
  const double now = network_.engine().now();
  const int stream = static_cast<int>(index % stream_busy_.size());
  busy_seconds_ += now - started;
  if (timeline != nullptr && now > started) {
    const bool load = options_.kind == SimOperation::Kind::load;
    timeline->spans.push_back({(load ? "load " : "all-reduce ") + std::to_string(index),
                               load ? "loading" : "communication", 0, first_track + stream, started, now});
  }
  stream_busy_[static_cast<std::size_t>(stream)] = false;
  --running_;
  const auto waiting = std::move(collectives_[index - first_].waiting);
  collectives_[index - first_].waiting.clear();
  while (!collectives_.empty() && collectives_.front().started && collectives_.front().waiting.empty()) {
    collectives_.pop_front();
    ++first_;
  }
  start_ready();
  for (const auto& operation : waiting) {
    operation->end = clock_.work_now();
    operation->complete();
  }
}

}  // namespace stepcast
