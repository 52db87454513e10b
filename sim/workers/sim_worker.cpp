#include "sim/workers/sim_worker.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <stdexcept>

#include "core/memory.hpp"

namespace stepcast {
namespace {

const char* name_of(Work pass) {
  constexpr std::array kNames{"forward", "backward", "update"};  // in the order of Work
  return kNames[ordinal(pass)];
}

std::shared_ptr<SimOperation> new_operation(SimOperation::Kind kind) {
  auto operation = std::allocate_shared<SimOperation>(PoolAllocator<SimOperation>());
  operation->kind = kind;
  return operation;
}

std::vector<int> recorded_ranks(const std::vector<int>& all, int first, int members) {
  const auto begin = std::ranges::lower_bound(all, first);
  return {begin, std::lower_bound(begin, all.end(), first + members)};
}

CollectiveQueue::Options load_options(const SimWorld& world, RoleId role, int first, int members) {
  CollectiveQueue::Options options;
  options.load = true;
  options.members = members;
  options.pattern = [pattern = world.collectives.load_pattern(role, first)](CollectiveId) { return pattern; };
  return options;
}

Slowdown slowdown_of(const Plan& plan, const Role& role) {
  return {plan.compute_slowdown, role.training ? plan.message_slowdown : 1, plan.load_slowdown};
}

}  // namespace

SimWorker::SimWorker(SimWorld& world, StepStatistics& statistics, RoleId role, int first, int members)
    : world_(world),
      statistics_(statistics),
      role_id_(role),
      role_(world.simulation.plan->roles[role.index()]),
      first_(first),
      count_(members),
      members_(world.simulation, role_, first, members),
      memory_(world.simulation.memories.empty() ? nullptr
                                                : world.simulation.memories[members_.rank(0).index()]),
      number_(world.program(role, first)),
      clock_(world.network.engine(), slowdown_of(*world.simulation.plan, role_)),
      loads_(world.network, load_options(world, role, first, members)),
      log_(world.logs == nullptr ? nullptr : &(*world.logs)[number_]) {
  if (log_ != nullptr) {
    log_->role = role;
    log_->first = first;
    log_->members = members;
  }
  if (world.timeline != nullptr) {
    recorded_ = recorded_ranks(world.simulation.timeline_ranks, members_.rank(0).value, members);
    loads_.timeline = world.timeline;
  }
  world_.messages.add_receiver(number_, clock_);
  draw_step();
}

const Workload& SimWorker::workload() const {
  return world_.simulation.plan->workloads.at(role_.workload);
}

std::string SimWorker::name() const {
  if (count_ > 1) return fmt::format("slowest of {} {}s", count_, role_.name);
  return role_.members > 1 ? fmt::format("{} {}", role_.name, first_) : role_.name;
}

void SimWorker::draw_step() {
  if (role_.training) members_.draw_step(step_, world_.times[role_.workload].samples());
}

/// Adds a span from `start` to now for every recorded rank.
void SimWorker::add_spans(Span::Kind kind, double start, const std::string& name, std::int64_t item) {
  Span span;
  span.kind = kind;
  span.name = world_.timeline->name(name);
  span.issued = span.start = start;
  span.end = world_.network.engine().now();
  span.item = item;
  for (const int rank : recorded_) {
    span.rank = rank;
    world_.timeline->add(span);
  }
}

/// Adds a span from `begin` to `end`, two dates of the worker's clock, when they have come.
void SimWorker::add_spans_at(double begin, double end, Span::Kind kind, const std::string& name) {
  const auto started = std::make_shared<double>(0);
  const Engine& engine = world_.network.engine();
  clock_.at_work(begin, [started, &engine] { *started = engine.now(); });
  clock_.at_work(end, [this, started, kind, name] { add_spans(kind, *started, name); });
}

/// Adds a pass to the timeline and to the log, layer by layer. @param begin  of the pass, on the worker's
/// clock
void SimWorker::add_layers(Work pass, LayerRange layers, double begin) {
  if (recorded_.empty() && log_ == nullptr) return;
  const ComputeTimes& times = world_.times[role_.workload];
  const std::vector<std::string>& names = workload().layer_names;
  for (const auto& [layer, end] : members_.layer_ends(pass, layers, times, begin)) {
    const std::size_t index = layer;
    const std::string name = index < names.size() ? names[index] : fmt::format("layer {}", layer);
    if (end > begin && !recorded_.empty())
      add_spans_at(begin, end, Span::Kind::compute, name + " " + name_of(pass));
    if (end > begin && log_ != nullptr)
      log_->add({LoggedOperation::Kind::compute, name + " " + name_of(pass), end - begin},
                ProgramLog::kDevice);
    begin = end;
  }
}

Pending SimWorker::busy_until(double work) {
  auto operation = new_operation(SimOperation::Kind::compute);
  if (log_ != nullptr) {
    operation->record = std::make_shared<OperationRecord>();
    operation->record->logged = log_->last_on(ProgramLog::kDevice);
  }
  clock_.at_work(work, [operation] { operation->complete(); });
  return operation;
}

void SimWorker::log(SimOperation& operation, LoggedOperation logged, ProgramLog::Stream stream) {
  if (log_ == nullptr) return;
  operation.record->log = log_;
  operation.record->logged = log_->add(std::move(logged), stream);
}

Pending SimWorker::busy_for(double seconds, bool factor, Span::Kind kind, const char* what) {
  const double from = role_.training ? 0 : clock_.work_now();
  const double begin = std::max(members_.latest(), from);
  members_.add_busy_time(seconds, factor ? world_.simulation.compute_factor : 1, from);
  if (kind == Span::Kind::pause) members_.synchronize();  // it is the host that is busy
  if (!recorded_.empty()) add_spans_at(begin, members_.latest(), kind, what);
  if (log_ != nullptr && seconds > 0) {
    const bool pause = kind == Span::Kind::pause;
    log_->add({pause ? LoggedOperation::Kind::host : LoggedOperation::Kind::compute, what,
               members_.latest() - begin},
              ProgramLog::kDevice);
    if (pause) log_->synchronized();
  }
  return busy_until(members_.latest());
}

/// A new operation, which the timeline and the log show if there are any.
std::shared_ptr<SimOperation> SimWorker::communication(const char* awaited) {
  auto operation = new_operation(SimOperation::Kind::communication);
  if (world_.timeline == nullptr && log_ == nullptr) return operation;
  operation->record = std::make_shared<OperationRecord>();
  operation->record->ranks = recorded_;
  operation->record->issued = world_.network.engine().now();
  operation->record->awaited = awaited;
  return operation;
}

Pending SimWorker::start_compute(Work pass, LayerRange layers) {
  const bool by_layer = world_.simulation.noise.jitter == Noise::Jitter::layers;
  world_.clock_moves +=
      static_cast<std::int64_t>(members_.size()) * (by_layer ? layers.last - layers.first : 1);
  const double begin = members_.latest();
  members_.compute(pass, layers, world_.times[role_.workload]);
  if (memory_ != nullptr) memory_->compute(pass, layers);
  add_layers(pass, layers, begin);
  return busy_until(members_.latest());
}

Pending SimWorker::start_local(const LocalWork& work) {
  if (memory_ != nullptr && work.run) memory_->calculate(work.run);
  return busy_for(work.duration.value, true, Span::Kind::compute, work.name);
}

Pending SimWorker::start_pause(Seconds duration) {
  // busy_for applies the worker's noise, as to all host work
  return busy_for(duration.value, false, Span::Kind::pause, "pause");
}

Pending SimWorker::start_collective(CollectiveId id) {
  const Collective& collective = world_.simulation.plan->collectives.at(id.index());
  const CommunicatorId number = collective.communicator;
  const Communicator& communicator = world_.simulation.plan->communicators[number.index()];
  const IdTable<RankId, int>& position = world_.position[number];
  const int place = position[members_.rank(0)];
  if (place < 0) throw std::logic_error(name() + " is not in the communicator of its collective");
  const bool joint = world_.collectives.joint(number);
  auto operation = communication("wait for collective");
  if (joint) operation->lags = members_.group_lags(communicator, position);
  const std::size_t call = calls_[number]++;
  const std::size_t streams = std::min(communicator.streams, communicator.in_flight);
  log(*operation, {.kind = LoggedOperation::Kind::collective, .collective = id, .call = call},
      {static_cast<int>(number.index()), call % std::max<std::size_t>(streams, 1)});
  if (memory_ != nullptr) {
    if (auto on_waited = memory_->start_collective(id, call))
      operation->values = std::make_shared<const MovedValues>(MovedValues{{}, std::move(on_waited)});
  }
  world_.queues.at({number, joint ? 0 : place / communicator.size})
      ->join(call, count_, id, collective.buffer.size, operation, clock_);
  return operation;
}

Pending SimWorker::start_send(RoleId role, const Message& message) {
  auto operation = communication("wait for sent message");
  operation->lags = members_.lags();
  const bool alone = world_.simulation.plan->roles[role.index()].members == 1;
  const int member = alone || world_.collectives.folding().folds ? 0 : first_;
  if (memory_ != nullptr && message.buffer.array != Array::none) {
    const std::span<float> sent = memory_->send_buffer(message);
    operation->values = std::make_shared<const MovedValues>(MovedValues{{sent.begin(), sent.end()}, {}});
  }
  operation->message = message;
  operation->message.from = role_id_;
  log(*operation, {.kind = LoggedOperation::Kind::send, .message = operation->message, .peer = role},
      ProgramLog::kNone);
  world_.messages.send({role_id_, first_}, {role, member}, world_.program(role, member), operation, clock_);
  return operation;
}

Pending SimWorker::start_receive(MessageTag tag, RoleId role, Array into) {
  auto operation = communication("wait for message");
  operation->receives = true;
  operation->into = into;
  log(*operation, {.kind = LoggedOperation::Kind::receive}, ProgramLog::kNone);
  world_.messages.receive(number_, tag, role, operation, clock_);
  return operation;
}

Pending SimWorker::start_load(Bytes input) {
  auto operation = communication("wait for input");
  operation->kind = SimOperation::Kind::load;
  operation->lags = members_.lags();  // each member's load began earlier than the latest by its lag
  log(*operation, {.kind = LoggedOperation::Kind::host, .name = "load input"}, ProgramLog::kLoads);
  loads_.join(load_calls_++, count_, CollectiveId{}, input, operation, clock_);
  return operation;
}

void SimWorker::take_values(const SimOperation& done) {
  if (done.values->on_waited) done.values->on_waited();
  if (!done.receives) return;
  Message message = done.message;
  if (done.into != Array::none) message.buffer.array = done.into;
  memory_->receive(message, done.values->content);
}

void SimWorker::waited_for(const Operation& operation) {
  const auto& done = static_cast<const SimOperation&>(operation);
  if (log_ != nullptr) log_->waited_for(done.record->logged);
  if (log_ != nullptr && done.kind == SimOperation::Kind::load)
    log_->operations[done.record->logged].seconds = done.record->arrived - done.record->started;
  if (world_.timeline != nullptr && done.record) add_spans(Span::Kind::wait, resumed_, done.record->awaited);
  resumed_ = world_.network.engine().now();
  if (done.values) take_values(done);
  if (done.kind == SimOperation::Kind::compute) return;  // the clocks are already at its end
  if (done.kind == SimOperation::Kind::load) loading_ += std::max(0.0, operation.end - members_.latest());
  members_.wait_until(operation.end, done.lags);
}

void SimWorker::synchronize() {
  members_.synchronize();
  if (log_ != nullptr) log_->synchronized();
}

void SimWorker::end_step() {
  if (log_ != nullptr) log_->synchronized();
  ProgramStep step;
  step.members = count_;
  step.loading = loading_;
  members_.end_step(step);
  loading_ = 0;
  if (role_.training) {
    statistics_.add(number_, step_, step);
    world_.records.step_ended(number_, world_.network.engine().now());
  }
  if (memory_ != nullptr) memory_->step_ended(world_.network.engine().now());
  if (!recorded_.empty())
    add_spans(Span::Kind::step, step_began_, fmt::format("ProfilerStep#{}", step_), step_);
  step_began_ = world_.network.engine().now();
  ++step_;
  draw_step();
}

double SimWorker::mark(const char* phase) {
  const double now = world_.network.engine().now(), seconds = now - marked_;
  record(phase, seconds);
  marked_ = now;
  return seconds;
}

void SimWorker::record(const char* what, double value) {
  world_.records.add(what, value, world_.network.engine().now());
}

}  // namespace stepcast
