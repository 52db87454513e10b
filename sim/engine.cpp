#include "sim/engine.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace stepcast {
namespace {

/// SimGrid takes whole bytes; closed forms to 1e-9 need finer ones. Bandwidths are scaled likewise.
constexpr double kUnitsPerByte = 1024;

}  // namespace

Engine::Engine(std::vector<BytesPerSecond> links) : links_(std::move(links)) {}

Engine::~Engine() = default;

SimGridFlows& Engine::simgrid() {
  if (simgrid_) return *simgrid_;
  std::vector<double> bandwidths;
  bandwidths.reserve(links_.size());
  for (const BytesPerSecond link : links_) bandwidths.push_back(link.value * kUnitsPerByte);
  simgrid_ = std::make_unique<SimGridFlows>(bandwidths, [this](Callback& done) {
    now_ = std::max(now_, simgrid_->clock());
    call(done);
  });
  return *simgrid_;
}

void Engine::add_places() {
  const std::uint64_t first = callbacks_.size() * kRow;
  if (first >> kPlaceBits != 0) throw std::length_error("more events at once than an engine holds");
  callbacks_.push_back(std::make_unique<Callback[]>(kRow));
  for (std::uint64_t place = first + kRow; place-- > first;) free_.push_back(place);
}

void Engine::add(const Event& event) {
  queue_.push(event);
  arm();
}

void Engine::start_flow(const std::vector<int>& links, Bytes size, Callback done) {
  const double units = std::round(size.value * kUnitsPerByte);
  ++flows_;
  if (links.empty() || units < 1) return at(now_, std::move(done));
  const bool caught_up = simgrid_ && simgrid_->clock() >= now_;
  if (caught_up) return simgrid_->start(links, units, std::move(done));
  waiting_.push_back({links, units, std::move(done)});
  if (!playing_) arm();
}

void Engine::start_waiting() {
  std::vector<Waiting> flows;
  flows.swap(waiting_);
  for (Waiting& flow : flows) simgrid().start(flow.links, flow.units, std::move(flow.done));
}

/// Sets a SimGrid timer for what comes next, where SimGrid's clock is what goes on.
void Engine::arm() {
  if (playing_ || !simgrid_) return;
  if (waiting_.empty() && queue_.empty()) return;
  const double date = waiting_.empty() ? queue_.top().date : now_;
  if (!armed_.empty() && armed_.back() <= date) return;
  armed_.push_back(date);
  simgrid_->at(date, [this] { fire(); });
}

void Engine::fire() {
  armed_.pop_back();  // timers fire by date, so this one's
  const double clock = simgrid_->clock();
  if (clock >= now_) {
    now_ = clock;
    start_waiting();
  }
  play_events();
  arm();
}

/// Plays what is due; what comes later too, as long as no flow needs SimGrid's clock.
void Engine::play_events() {
  playing_ = true;
  while (!queue_.empty()) {
    const Event next = queue_.top();
    if (next.date > now_) {
      if ((simgrid_ && simgrid_->under_way() > 0) || !waiting_.empty()) break;
      now_ = next.date;
    }
    const std::uint64_t place = place_of(next);
    queue_.pop();
    if (const Event* soon = queue_.empty() ? nullptr : queue_.soon())
      __builtin_prefetch(&callback(place_of(*soon)));
    ++events_;
    call(callback(place));
    callback(place).reset();
    free_.push_back(place);
  }
  playing_ = false;
}

void Engine::call(Callback& callback) {
  if (error_) return;  // drain: SimGrid must not see an exception
  try {
    callback();
  } catch (...) {
    error_ = std::current_exception();
  }
}

void Engine::run() {
  play_events();
  while (!waiting_.empty() || (simgrid_ && simgrid_->under_way() > 0)) {
    simgrid();
    arm();
    simgrid_->run();
  }
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

}  // namespace stepcast
