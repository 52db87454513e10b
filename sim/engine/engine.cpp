#include "sim/engine/engine.hpp"

#include <algorithm>
#include <stdexcept>

#include "core/expects.hpp"

namespace stepcast {

Engine::Engine(FlowLinks links) : links_(std::move(links)) {}

Engine::~Engine() = default;

SimGridFlows& Engine::simgrid() {
  if (simgrid_) return *simgrid_;
  simgrid_ = std::make_unique<SimGridFlows>(links_, [this](Callback& done) {
    now_ = std::max(now_, simgrid_->clock());
    call(done);
  });
  return *simgrid_;
}

void Engine::add_slots() {
  const std::uint64_t first = callbacks_.size() * kBlock;
  if (first >> kSlotBits != 0) throw std::length_error("more events at once than an engine holds");
  callbacks_.push_back(std::make_unique<Callback[]>(kBlock));
  for (std::uint64_t slot = first + kBlock; slot-- > first;) free_.push_back(slot);
}

void Engine::start_flow(FlowRoute route, Bytes size, Callback done) {
  expects(size.value >= 0, "a size that is not negative");
  ++flows_;
  if (SimGridFlows::ends_at_once(route, size)) return at(now_, std::move(done));
  const bool caught_up = simgrid_ && simgrid_->clock() >= now_;
  if (caught_up) return simgrid_->start(route, size, std::move(done));
  waiting_.push_back({std::move(route), size, std::move(done)});
  if (!running_) arm();
}

void Engine::start_waiting() {
  std::vector<Waiting> flows;
  flows.swap(waiting_);
  for (Waiting& flow : flows) simgrid().start(flow.route, flow.size, std::move(flow.done));
}

/// Sets a SimGrid timer for the next event or waiting flow, once SimGrid drives the clock.
void Engine::arm() {
  if (running_ || !simgrid_) return;
  const bool now = !waiting_.empty() || !due_.empty();
  if (!now && queue_.empty()) return;
  const double date = now ? now_ : queue_.top().date;
  if (!armed_.empty() && armed_.back() <= date) return;
  armed_.push_back(date);
  simgrid_->at(date, [this] { fire(); });
}

void Engine::fire() {
  armed_.pop_back();  // timers fire in the order of their dates, so the last entry belongs to this one
  const double clock = simgrid_->clock();
  if (clock >= now_) {
    now_ = clock;
    start_waiting();
  }
  run_events();
  arm();
}

/// Takes the next event and sets the clock to its date; false if there is none, or if its date is later while
/// a flow needs SimGrid's clock. Events of the present date in queue_ were requested before those in due_.
bool Engine::next_slot(std::uint64_t& slot) {
  if (!due_.empty() && (queue_.empty() || queue_.top().date > now_)) {
    slot = due_.front();
    due_.pop_front();
    return true;
  }
  if (queue_.empty()) return false;
  const Event next = queue_.top();
  if (next.date > now_) {
    if ((simgrid_ && simgrid_->active_flows() > 0) || !waiting_.empty()) return false;
    now_ = next.date;
  }
  slot = slot_of(next);
  queue_.pop();
  if (const Event* upcoming = queue_.empty() ? nullptr : queue_.upcoming())
    __builtin_prefetch(&callback(slot_of(*upcoming)));
  return true;
}

/// Runs the events that are due, and later ones as long as no flow needs SimGrid's clock.
void Engine::run_events() {
  running_ = true;
  for (std::uint64_t slot = 0; next_slot(slot);) {
    ++events_;
    call(callback(slot));
    callback(slot).reset();
    free_.push_back(slot);
  }
  running_ = false;
}

void Engine::call(Callback& callback) {
  if (error_) return;  // after an error, later callbacks are dropped: no exception may pass through SimGrid
  try {
    callback();
  } catch (...) {
    error_ = std::current_exception();
  }
}

void Engine::run() {
  run_events();
  while (!waiting_.empty() || (simgrid_ && simgrid_->active_flows() > 0)) {
    simgrid();
    arm();
    simgrid_->run();
  }
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

void WorkClock::wait(double work, Engine::Callback callback) {
  waiting_.push({work, sequence_++, std::move(callback)});
  arm();
}

void WorkClock::collective(int change) {
  collectives_ += change;
  set_rate();
}

void WorkClock::message(int change) {
  messages_ += change;
  set_rate();
}

void WorkClock::load(int change) {
  loads_ += change;
  set_rate();
}

void WorkClock::set_rate() {
  const double rate =
      1 / std::max({collectives_ > 0 ? slowdown_.collectives : 1.0, messages_ > 0 ? slowdown_.messages : 1.0,
                    loads_ > 0 ? slowdown_.loads : 1.0});
  if (rate == rate_) return;
  work_ = work_now();
  since_ = engine_.now();
  rate_ = rate;
  armed_work_ = -1;
  arm();
}

void WorkClock::arm() {
  if (waiting_.empty() || (armed_work_ >= 0 && armed_work_ <= waiting_.top().work)) return;
  armed_work_ = waiting_.top().work;
  const double date = since_ + (armed_work_ - work_) / rate_;
  engine_.at(date, [this, generation = ++generation_] { fire(generation); });
}

void WorkClock::fire(std::uint64_t generation) {
  if (generation != generation_) return;  // the rate changed, or an earlier wait came in
  const double due = armed_work_;
  armed_work_ = -1;
  // The requested date is reached, even where rounding leaves work_now() below `due`.
  while (!waiting_.empty() && waiting_.top().work <= due) {
    Engine::Callback callback = std::move(const_cast<Waiting&>(waiting_.top()).callback);
    waiting_.pop();
    callback();
  }
  arm();
}

}  // namespace stepcast
