#include "campaigns/faults.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <queue>
#include <vector>

#include "core/random.hpp"

namespace stepcast {
namespace {

constexpr int kMostFailures = 200'000;
constexpr int kMostEvents = 20'000'000;

/// Event-driven simulation of one training. Times are in seconds; work is in seconds of undisturbed training.
class TrainingRun {
 public:
  /// `faults` must outlive this.
  TrainingRun(const Faults& faults, int draw);

  TrainingTime run();

 private:
  enum class Phase {
    working,
    saving,    ///< training waits for a checkpoint
    draining,  ///< training waits for the previous checkpoint, which is still being written
    down,      ///< all nodes wait for repair and restart
  };

  bool writes_checkpoints() const { return faults_.checkpoints.interval.value > 0; }
  double speed() const;       ///< relative speed of the live nodes, slow workers considered
  double live_share() const;  ///< live nodes / all nodes
  double target() const;      ///< work at which the next checkpoint or the training ends this phase
  double phase_seconds() const;
  double link_speed() const;  ///< relative speed with the links that have failed
  double exponential(Purpose purpose, std::uint32_t number, double mean, std::uint32_t item = 0) const;
  double time_to_slow_period() {
    return exponential(Purpose::slow_period, slow_periods_++, faults_.slow.every.value);
  }
  void draw_hazard();
  void start_links();
  double time_to_link_failure(std::size_t fault) const;

  void step();
  void advance(double seconds);
  void advance_timers(bool slow_period, bool write);
  void fail_node();
  void remove_node(double away, double part);
  void roll_back_to(double work);
  void return_node();
  void toggle_slow_period();
  void toggle_link(std::size_t fault);
  void cut_off(std::size_t fault);
  void stop_for(double seconds);
  void end_write();
  void end_phase();
  void end_working();
  void end_saving();
  void start(Phase phase, double seconds);
  void resume_training();

  static constexpr double kNever = std::numeric_limits<double>::infinity();

  const Faults& faults_;
  std::uint32_t draw_;
  TrainingTime time_;
  Phase phase_ = Phase::working;
  double phase_left_ = 0;
  double last_advance_ = 0;  ///< seconds of the last `advance`
  double work_ = 0;
  double saved_ = 0;            ///< work in the last complete checkpoint
  double next_checkpoint_ = 0;  ///< work at which the next checkpoint is due
  double pending_ = 0;          ///< work in the checkpoint that is being written in the background
  double write_left_ = kNever;  ///< time until that checkpoint is complete
  double hazard_left_ = kNever;
  int live_;
  /// Times at which failed nodes are back.
  std::priority_queue<double, std::vector<double>, std::greater<>> returns_;
  bool slow_ = false, done_ = false;
  double slow_timer_ = kNever;
  std::uint32_t slow_periods_ = 0;
  struct LinkState {
    double timer = kNever;  ///< time until the links fail, or until they are repaired
    bool failed = false;
    std::uint32_t failures = 0;
  };
  std::vector<LinkState> links_;  ///< of each of `faults_.links`
};

TrainingRun::TrainingRun(const Faults& faults, int draw) : faults_(faults), draw_(draw), live_(faults.nodes) {
  slow_ = faults.slow.share > 0 && faults.slow.every.value == 0;
  slow_timer_ = faults.slow.share > 0 && !slow_ ? time_to_slow_period() : kNever;
  draw_hazard();
  start_links();
  resume_training();
}

void TrainingRun::start_links() {
  links_.resize(faults_.links.size());
  for (std::size_t i = 0; i < links_.size(); ++i)
    links_[i].timer = faults_.links[i].mtbf.value > 0 ? time_to_link_failure(i) : faults_.links[i].at.value;
}

TrainingTime TrainingRun::run() {
  for (int i = 0; !done_ && i < kMostEvents && time_.failures + time_.link_failures < kMostFailures; ++i)
    step();
  time_.finished = done_;
  return time_;
}

double TrainingRun::speed() const {
  if (!slow_) return 1;
  const SlowPeriods& slow = faults_.slow;
  return faults_.response == FailureResponse::restart ? 1 / slow.factor
                                                      : 1 - slow.share * (1 - 1 / slow.factor);
}

double TrainingRun::live_share() const {
  return 1.0 * live_ / faults_.nodes;
}
double TrainingRun::target() const {
  return writes_checkpoints() ? std::min(next_checkpoint_, faults_.training.value) : faults_.training.value;
}
double TrainingRun::link_speed() const {
  double least = 1;
  for (std::size_t i = 0; i < links_.size(); ++i) {
    if (links_[i].failed) least = std::min(least, faults_.links[i].speed);
  }
  return least;
}
double TrainingRun::time_to_link_failure(std::size_t fault) const {
  const double mean = faults_.links[fault].mtbf.value;
  return mean > 0 ? exponential(Purpose::link_failure, links_[fault].failures, mean, fault) : kNever;
}
double TrainingRun::exponential(Purpose purpose, std::uint32_t number, double mean,
                                std::uint32_t item) const {
  return -mean * std::log1p(-uniform({faults_.seed, purpose, draw_, number, item}));
}

/// A failure happens when the live nodes have run for this time together [node seconds]. So failures come at
/// the same times for every checkpoint interval.
void TrainingRun::draw_hazard() {
  const auto number = static_cast<std::uint32_t>(time_.failures);
  const bool any = faults_.node_mtbf.value > 0;
  hazard_left_ = any ? exponential(Purpose::failure, number, faults_.node_mtbf.value) : kNever;
}

double TrainingRun::phase_seconds() const {
  if (phase_ == Phase::draining) return kNever;  // ends with the write
  if (phase_ != Phase::working) return phase_left_;
  return live_ > 0 ? (target() - work_) / (live_share() * speed() * link_speed()) : kNever;
}

void TrainingRun::step() {
  const double phase = phase_seconds();
  const double failure = live_ > 0 ? hazard_left_ / live_ : kNever;
  const double back = returns_.empty() ? kNever : returns_.top() - time_.total.value;
  const auto link = std::ranges::min_element(links_, {}, &LinkState::timer);
  const double of_links = link == links_.end() ? kNever : link->timer;
  const double next = std::min({phase, failure, back, slow_timer_, write_left_, of_links});
  advance(next);
  if (next == failure) return fail_node();
  if (next == back) return return_node();
  if (next == slow_timer_) return toggle_slow_period();
  if (next == of_links) return toggle_link(link - links_.begin());
  if (next == write_left_) return end_write();
  end_phase();
}

void TrainingRun::advance(double seconds) {
  time_.total.value += seconds;
  if (hazard_left_ != kNever) hazard_left_ -= seconds * live_;
  if (phase_ == Phase::working) {
    work_ += seconds * live_share() * speed() * link_speed();
    time_.links.value += seconds * live_share() * speed() * (1 - link_speed());
    time_.missing.value += seconds * (1 - live_share());
    time_.slow.value += seconds * live_share() * (1 - speed());
  } else if (phase_ == Phase::down) {
    time_.restart.value += seconds;
  } else {
    time_.checkpoints.value += seconds;
  }
  last_advance_ = seconds;
  if (phase_ == Phase::saving || phase_ == Phase::down) phase_left_ -= seconds;
}

/// Advances the timers that run during the phases. An event does not advance its own timer.
void TrainingRun::advance_timers(bool slow_period, bool write) {
  if (slow_period && slow_timer_ != kNever) slow_timer_ -= last_advance_;
  if (write && write_left_ != kNever) write_left_ -= last_advance_;
  for (LinkState& link : links_) link.timer -= last_advance_;  // infinity stays infinity
}

void TrainingRun::fail_node() {
  advance_timers(true, true);
  ++time_.failures;
  draw_hazard();
  const double away = faults_.repair.value + faults_.restart.value;
  const auto number = static_cast<std::uint32_t>(time_.failures);
  if (faults_.response == FailureResponse::shrink)
    return remove_node(away, uniform({faults_.seed, Purpose::failure, draw_, number, 1}));
  stop_for(away);
}

/// All nodes stop, go back to the last checkpoint and train again after this time at the earliest.
void TrainingRun::stop_for(double seconds) {
  roll_back_to(saved_);
  start(Phase::down, phase_ == Phase::down ? std::max(seconds, phase_left_) : seconds);
}

/// Removes a node with the work that it had not sent, a part of `exchange`. With the last node the model is
/// lost.
void TrainingRun::remove_node(double away, double part) {
  if (phase_ == Phase::working) {
    const double unsent = part * faults_.exchange.value / faults_.nodes;
    time_.rework.value += std::min(unsent, work_);
    work_ -= std::min(unsent, work_);
  }
  --live_;
  returns_.push(time_.total.value + away);
  if (live_ > 0) return;
  roll_back_to(saved_);
  resume_training();
}

void TrainingRun::roll_back_to(double work) {
  time_.rework.value += std::max(work_ - work, 0.0);
  work_ = std::min(work_, work);
  write_left_ = kNever;
}

void TrainingRun::return_node() {
  advance_timers(true, true);
  returns_.pop();
  ++live_;
}

void TrainingRun::toggle_slow_period() {
  advance_timers(false, true);
  slow_ = !slow_;
  slow_timer_ = slow_ ? faults_.slow.lasts.value : time_to_slow_period();
}

void TrainingRun::toggle_link(std::size_t fault) {
  advance_timers(true, true);
  const LinkFault& links = faults_.links[fault];
  LinkState& state = links_[fault];
  state.failed = !state.failed;
  if (!state.failed) {
    state.timer = time_to_link_failure(fault);
    return;
  }
  ++state.failures;
  ++time_.link_failures;
  state.timer = links.lasts.value;
  if (links.cut_off > 0) cut_off(fault);
}

void TrainingRun::cut_off(std::size_t fault) {
  const LinkFault& links = faults_.links[fault];
  if (faults_.response == FailureResponse::restart)
    return stop_for(links.lasts.value + faults_.restart.value);
  const std::uint32_t item = faults_.links.size() + fault;
  for (int node = std::min(links.cut_off, live_); node > 0; --node)
    remove_node(links.lasts.value,
                uniform({faults_.seed, Purpose::link_failure, draw_, links_[fault].failures, item}));
}

void TrainingRun::end_write() {
  advance_timers(true, false);
  write_left_ = kNever;
  saved_ = pending_;
  if (phase_ != Phase::draining) return;
  if (saved_ == faults_.training.value) {
    done_ = true;
  } else {
    start(Phase::saving, faults_.checkpoints.snapshot.value);
  }
}

void TrainingRun::end_phase() {
  advance_timers(true, true);
  if (phase_ == Phase::working) return end_working();
  if (phase_ == Phase::saving) end_saving();
  if (phase_ != Phase::draining) resume_training();
}

void TrainingRun::end_working() {
  work_ = target();
  if (!writes_checkpoints()) {
    done_ = true;
  } else if (!faults_.checkpoints.background) {
    start(Phase::saving, faults_.checkpoints.write.value);
  } else if (write_left_ != kNever) {
    phase_ = Phase::draining;
  } else {
    start(Phase::saving, faults_.checkpoints.snapshot.value);
  }
}

void TrainingRun::end_saving() {
  const bool last = work_ == faults_.training.value;
  if (!faults_.checkpoints.background) {
    saved_ = work_;
    done_ = last;
    return;
  }
  pending_ = work_;
  write_left_ = faults_.checkpoints.write.value;
  if (last) phase_ = Phase::draining;
}

void TrainingRun::start(Phase phase, double seconds) {
  phase_ = phase;
  phase_left_ = seconds;
}

void TrainingRun::resume_training() {
  phase_ = Phase::working;
  next_checkpoint_ = work_ + faults_.checkpoints.interval.value;
}

}  // namespace

TrainingTime training_time(const Faults& faults, int draw) {
  return TrainingRun(faults, draw).run();
}

TrainingTime mean_training_time(const Faults& faults, int draws, std::vector<double>* totals) {
  TrainingTime sum;
  for (int draw = 0; draw < draws; ++draw) {
    const TrainingTime one = training_time(faults, draw);
    for (const auto part :
         {&TrainingTime::total, &TrainingTime::checkpoints, &TrainingTime::rework, &TrainingTime::restart,
          &TrainingTime::missing, &TrainingTime::slow, &TrainingTime::links}) {
      sum.*part += one.*part / draws;
    }
    sum.failures += one.failures / draws;
    sum.link_failures += one.link_failures / draws;
    sum.finished = sum.finished && one.finished;
    if (totals != nullptr) totals->push_back(one.total.value);
  }
  return sum;
}

}  // namespace stepcast
