#include "sim/workers/clock_run.hpp"

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "sim/workers/step_statistics.hpp"

namespace stepcast {
namespace {

/// An operation of all members. Both tables are by member.
struct MemberOperation : Operation {
  bool computes = false;
  double loading = 0;         ///< of a load: 1
  std::vector<double> dates;  ///< of communication: when it ends [s]
  std::vector<double> works;  ///< its ends in the coordinate of the member's work [s]
};

/// The progress of a member's compute, as WorkClock's, over dates that are known before they come.
class MemberWork {
 public:
  /// A collective begins or ends at `date`.
  /// @param ended  the operation whose entry of `works` is this date, if it ends
  void add(double date, int change, std::shared_ptr<MemberOperation> ended = nullptr) {
    const auto place = std::ranges::lower_bound(coming_, date, std::ranges::greater(), &Change::date);
    coming_.insert(place, {date, change, std::move(ended)});
  }

  /// Takes all changes up to `date`.
  void advance(double date, double slowdown, std::size_t member) {
    while (!coming_.empty() && coming_.back().date <= date) take_next(slowdown, member);
  }

  double work_at(double date) const { return work_ + (date - since_) * rate_; }

  /// The date at which this much work is done. Takes all changes before it.
  double date_of(double work, double slowdown, std::size_t member) {
    for (;;) {
      const double date = since_ + (work - work_) / rate_;
      if (coming_.empty() || coming_.back().date >= date) return date;
      take_next(slowdown, member);
    }
  }

 private:
  struct Change {
    double date;
    int change;
    std::shared_ptr<MemberOperation> ended;
  };

  void take_next(double slowdown, std::size_t member) {
    const Change next = std::move(coming_.back());
    coming_.pop_back();
    running_ += next.change;
    const double rate = running_ > 0 ? 1 / slowdown : 1;
    if (rate != rate_) {
      work_ = work_at(next.date);
      since_ = next.date;
      rate_ = rate;
    }
    if (next.ended) next.ended->works[member] = work_at(next.date);
  }

  double work_ = 0, since_ = 0, rate_ = 1;
  int running_ = 0;             ///< collectives
  std::vector<Change> coming_;  ///< latest first
};

/// The calls of a communicator so far: those of CollectiveQueue, for all groups.
struct GroupCalls {
  std::vector<std::size_t> group;  ///< by member
  std::size_t groups = 1, streams = 1;
  std::size_t calls = 0;
  std::vector<double> ready;  ///< by group: when the collectives called so far may begin at the earliest [s]
  std::vector<double> ends;   ///< by group and stream: end of its last collective [s]
  double busy = 0;            ///< duration of all calls, mean over groups [s]
};

GroupCalls no_calls(const Communicator& communicator, const Role& role) {
  GroupCalls calls;
  calls.group.resize(role.members);
  for (std::size_t i = 0; i < communicator.ranks.size(); ++i)
    calls.group[role.member(communicator.ranks[i])] = i / communicator.size;
  calls.groups = communicator.groups();
  calls.streams = communicator.in_flight == 1 ? 1 : communicator.streams;
  calls.ready.resize(calls.groups, 0);
  calls.ends.resize(calls.groups * calls.streams, 0);
  return calls;
}

/// All workers of the plan.
class ClockedWorkers : public Worker {
 public:
  ClockedWorkers(const Simulation& simulation, const PlannedCollectives& collectives)
      : simulation_(simulation),
        collectives_(collectives),
        plan_(*simulation.plan),
        role_(plan_.roles.front()),
        times_(workload()),
        members_(simulation, role_, 0, role_.members),
        now_(members_.size(), 0),
        marked_(members_.size(), 0),
        loading_(members_.size(), 0),
        work_(members_.size()),
        statistics_(
            role_.members, 1, [this] { return latest(); }, [this] { return busy(); }) {
    for (const Communicator& one : plan_.communicators) calls_.push_back(no_calls(one, role_));
    members_.draw_step(step_, times_.samples());
  }

  const Workload& workload() const override { return plan_.workloads.at(role_.workload); }

  Pending start_compute(Work pass, LayerRange layers) override {
    const bool by_layer = simulation_.noise.jitter == Noise::Jitter::layers;
    clock_moves_ += static_cast<std::int64_t>(members_.size()) * (by_layer ? layers.last - layers.first : 1);
    members_.compute(pass, layers, times_);
    return computed();
  }

  Pending start_local(const LocalWork& work) override {
    members_.add_busy_time(work.duration.value, simulation_.compute_factor, 0);
    return computed();
  }

  Pending start_pause(Seconds duration) override {
    members_.add_busy_time(duration.value, 1, 0);
    members_.synchronize();
    return computed();
  }

  Pending start_collective(CollectiveId id) override {
    const Collective& collective = plan_.collectives.at(id.index());
    GroupCalls& calls = calls_[collective.communicator.index()];
    const CollectiveSchedules::Chosen& chosen = collectives_.schedules()[id];
    const double seconds = chosen.schedule == nullptr ? 0 : chosen.seconds;
    std::vector<double> called(calls.groups, 0);
    for (std::size_t i = 0; i < now_.size(); ++i)
      called[calls.group[i]] = std::max(called[calls.group[i]], now_[i]);
    const std::size_t stream = calls.calls++ % calls.streams;
    std::vector<double> starts(calls.groups);
    for (std::size_t g = 0; g < calls.groups; ++g) {
      calls.ready[g] = std::max(calls.ready[g], called[g] + std::max(collective.wait.value, 0.0));
      double& end = calls.ends[g * calls.streams + stream];
      starts[g] = std::max(calls.ready[g], end);
      end = starts[g] + seconds;
    }
    calls.busy += seconds;
    return communicated(calls, stream, starts, chosen.schedule != nullptr);
  }

  Pending start_load(Bytes /*input*/) override {  // no input comes from storage, so it is there
    auto operation = new_operation(false);
    operation->loading = 1;
    operation->dates = now_;
    operation->works.resize(now_.size());
    for (std::size_t i = 0; i < now_.size(); ++i) {
      work_[i].advance(now_[i], slowdown(), i);
      operation->works[i] = work_[i].work_at(now_[i]);
    }
    return operation;
  }

  Pending start_send(RoleId /*role*/, const Message& /*message*/) override { throw single_message(); }
  Pending start_receive(MessageTag /*tag*/, RoleId /*role*/, Array /*into*/) override {
    throw single_message();
  }

  void synchronize() override { members_.synchronize(); }

  void end_step() override {
    ProgramStep step;
    step.members = role_.members;
    step.loading = *std::ranges::max_element(loading_);
    std::ranges::fill(loading_, 0);
    members_.end_step(step);
    statistics_.add(0, step_++, step);
    members_.draw_step(step_, times_.samples());
    for (const auto& [phase, times] : phases_)
      records_[phase].insert(records_[phase].end(), times.begin(), times.end());
    phases_.clear();
  }

  double mark(const char* phase) override {
    std::vector<double>& times = phases_[phase];
    times.resize(now_.size(), 0);
    for (std::size_t i = 0; i < now_.size(); ++i) times[i] += now_[i] - marked_[i];
    const double first = now_.front() - marked_.front();
    marked_ = now_;
    return first;
  }

  void record(const char* what, double value) override {
    std::vector<double>& values = records_[what];
    values.insert(values.end(), now_.size(), value);
  }

  SimulationResult result() {
    SimulationResult result;
    result.steps = statistics_.steps();
    result.records = std::move(records_);
    result.seconds = latest();
    result.clock_moves = clock_moves_;
    return result;
  }

 private:
  static std::logic_error single_message() {
    return std::logic_error("a plan without channels sends single messages");
  }

  static std::shared_ptr<MemberOperation> new_operation(bool computes) {
    auto operation = std::make_shared<MemberOperation>();
    operation->done = true;  // no program ever waits: what is to come is known
    operation->computes = computes;
    return operation;
  }

  Pending computed() const {
    auto operation = new_operation(true);
    operation->works = members_.clocks();
    return operation;
  }

  /// The operation of a collective that each group begins at its date. @param moves  it takes time
  Pending communicated(const GroupCalls& calls, std::size_t stream, const std::vector<double>& starts,
                       bool moves) {
    auto operation = new_operation(false);
    operation->dates.resize(now_.size());
    for (std::size_t i = 0; i < now_.size(); ++i)
      operation->dates[i] = calls.ends[calls.group[i] * calls.streams + stream];
    operation->works = operation->dates;
    if (slowdown() == 1) return operation;  // work is time
    for (std::size_t i = 0; i < now_.size(); ++i) {
      work_[i].advance(now_[i], slowdown(), i);  // so that few changes are to come
      if (moves) work_[i].add(starts[calls.group[i]], +1);
      work_[i].add(operation->dates[i], moves ? -1 : 0, operation);
    }
    return operation;
  }

  void waited_for(const Operation& operation) override {
    const auto& done = static_cast<const MemberOperation&>(operation);
    if (done.computes) {  // the clocks are already at its end
      for (std::size_t i = 0; i < now_.size(); ++i)
        now_[i] = std::max(now_[i], work_[i].date_of(done.works[i], slowdown(), i));
      return;
    }
    for (std::size_t i = 0; i < now_.size(); ++i) {
      now_[i] = std::max(now_[i], done.dates[i]);
      work_[i].advance(now_[i], slowdown(), i);
      const double late = members_.wait_until(i, done.works[i]);
      loading_[i] += done.loading * late;
    }
  }

  double slowdown() const { return plan_.compute_slowdown; }
  double latest() const { return *std::ranges::max_element(now_); }
  double busy() const {
    return std::accumulate(calls_.begin(), calls_.end(), 0.0,
                           [](double sum, const GroupCalls& calls) { return sum + calls.busy; });
  }

  const Simulation& simulation_;
  const PlannedCollectives& collectives_;
  const Plan& plan_;
  const Role& role_;
  ComputeTimes times_;
  MemberClocks members_;
  std::vector<double> now_;      ///< by member: the date at which its program is [s]
  std::vector<double> marked_;   ///< by member: the date of its last mark [s]
  std::vector<double> loading_;  ///< by member: waiting for input in this step [s]
  std::vector<MemberWork> work_;
  std::vector<GroupCalls> calls_;  ///< by communicator
  StepStatistics statistics_;
  Records records_;
  Records phases_;  ///< marked in this step: the sum for each member [s]
  int step_ = 0;
  std::int64_t clock_moves_ = 0;
};

}  // namespace

SimulationResult run_by_clocks(const Simulation& simulation, const PlannedCollectives& collectives) {
  ClockedWorkers workers(simulation, collectives);
  Program program = simulation.plan->roles.front().program(workers);
  program.start();
  if (program.error()) std::rethrow_exception(program.error());
  if (!program.done()) throw std::logic_error("a program waits where all dates are known");
  return workers.result();
}

}  // namespace stepcast
