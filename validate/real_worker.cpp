#include "validate/real_worker.hpp"

#include <fmt/format.h>

#include <functional>
#include <stdexcept>

#include "kernels/stopwatch.hpp"
#include "validate/roles.hpp"
#include "validate/sleep_until.hpp"

namespace stepcast {
namespace {

constexpr int kOver = -1000;  // tag of the message that says that a training program has ended

double array_seconds(const Plan& plan) {
  double update = 0;
  for (const LayerSeconds& layer : plan.workloads.front().median) update += layer.update;
  return update / 5;  // array_work: SGD with momentum reads three arrays and writes two
}

/// With what is to be done when the program has waited for it.
struct RealOperation : Operation {
  std::function<void()> waited;
};

class RealWorker : public Worker {
 public:
  RealWorker(RealWorld& world, int role)
      : world_(world), role_(role), plan_role_(world.plan.roles[static_cast<std::size_t>(role)]) {}

  const Workload& workload() const override {
    return world_.plan.workloads.at(static_cast<std::size_t>(plan_role_.workload));
  }

  Pending start_compute(Work pass, LayerRange layers) override {
    world_.device.compute(pass, layers);
    return done();
  }

  Pending start_local(const LocalWork& work) override {
    if (work.run && world_.plan.no_arithmetic.empty() && world_.device.calculate(work.run)) return done();
    const double unit = array_seconds(world_.plan);
    world_.device.touch_arrays(unit > 0 ? work.duration.value / unit : 0, work.duration.value);
    return done();
  }

  Pending start_pause(Seconds duration) override {
    world_.device.finish();
    world_.device.pause(duration.value);
    return done();
  }

  Pending start_load(Bytes) override { return done(); }

  Pending start_collective(int index) override {
    const Collective& collective = world_.plan.collectives.at(static_cast<std::size_t>(index));
    CollectiveWork work = world_.device.work_of(collective);
    const Slice part = world_.collectives.part(index, static_cast<std::int64_t>(work.memory.size()));
    work.memory =
        work.memory.subspan(static_cast<std::size_t>(part.begin), static_cast<std::size_t>(part.size()));
    if (work.on_device != nullptr) work.on_device += part.begin;
    const auto& phases = world_.collectives.phases(index, work.elements < 0 ? part.size() : work.elements);
    auto operation = std::make_shared<RealOperation>();
    operation->waited = std::move(work.waited);
    if (phases.empty()) return done();
    world_.thread.submit([this, index, operation, work = std::move(work), &phases] {
      try {
        carry(index, work, phases);
      } catch (...) {
        operation->error = std::current_exception();
      }
      world_.completions.post(operation);
    });
    return operation;
  }

  Pending start_send(int role, const Message& message) override {
    const Role& to = world_.plan.roles.at(static_cast<std::size_t>(role));
    const int member = to.members == 1 ? 0 : world_.transport.rank() - plan_role_.first_rank;
    Message signed_message = message;
    signed_message.from = role_;
    auto operation = std::make_shared<RealOperation>();
    if (const std::int64_t floats = world_.parcels == nullptr ? 0 : world_.device.floats_on_device(message)) {
      const Parcels::Room room = world_.parcels->room(floats);
      world_.device.put_in_parcel(message, room.memory.get());
      signed_message.parcel = world_.parcels->send(to.first_rank + member, room, floats, operation);
      world_.mail.send(to.first_rank + member, signed_message, {}, nullptr);
      return operation;
    }
    const std::span<float> payload =
        message.buffer.array == Array::none ? std::span<float>() : world_.device.outgoing(message);
    world_.mail.send(to.first_rank + member, signed_message, payload, operation);
    return operation;
  }

  Pending start_receive(int tag, int role, Array into) override {
    auto operation = std::make_shared<RealOperation>();
    operation->waited = [this, into, received = operation.get()] {
      Message message = received->message;
      if (message.buffer.array != Array::none && into != Array::none) message.buffer.array = into;
      if (message.parcel.number == 0) return world_.device.arrived(message);
      Parcels::Room room = world_.parcels->take(message.parcel);
      world_.device.take_from_parcel(message, room.memory.get());
      world_.parcels->give_back(std::move(room));
    };
    world_.mail.receive(tag, role, operation, [this, tag, into](const Buffer& buffer) {
      if (buffer.array == Array::none) return std::span<float>();
      Message message;
      message.tag = tag;
      message.buffer = buffer;
      if (into != Array::none) message.buffer.array = into;
      return world_.device.incoming(message);
    });
    return operation;
  }

  void calculate(const Arithmetic& run) override {
    if (run && world_.plan.no_arithmetic.empty()) world_.device.calculate(run);
  }

  void end_step() override {
    world_.device.finish();
    run_.step_ends.push_back(now().wall);
    run_.compute_seconds.push_back(world_.device.worked().wall - computed_);
    computed_ = world_.device.worked().wall;
    world_.device.begin_step(static_cast<int>(run_.step_ends.size()));
    world_.state.beat.fetch_add(1, std::memory_order_relaxed);
    if (world_.step_ended) world_.step_ended(run_.step_ends.back() - run_.begin);
  }

  double mark(const char* phase) override {
    const double seconds = now().wall - marked_;
    run_.records[phase].push_back(seconds);
    marked_ += seconds;
    return seconds;
  }

  void record(const char* what, double value) override { run_.records[what].push_back(value); }

  void begin() {
    run_.begin = marked_ = now().wall;
    computed_ = world_.device.worked().wall;
  }
  RealRun take_run() { return std::move(run_); }

 private:
  void waited_for(const Operation& operation) override {
    const auto& waited = static_cast<const RealOperation&>(operation).waited;
    if (waited) waited();
  }

  bool by_library(const Collective& collective) const {
    const auto& one = world_.plan.communicators.at(static_cast<std::size_t>(collective.communicator));
    return collective.kind == Collective::Kind::all_reduce && one.all_reduce.algorithm == Algorithm::mpi;
  }

  /// On the communication thread.
  void carry(int index, const CollectiveWork& work, const std::vector<std::vector<Round>>& phases) {
    if (by_library(world_.plan.collectives[static_cast<std::size_t>(index)])) {
      world_.library_all_reduce(work.memory.data(), static_cast<std::int64_t>(work.memory.size()));
    } else if (world_.carry && work.on_device != nullptr) {
      carry_work(world_.carry, index, work, phases);
    } else {
      play_work(world_.transport, work, phases);
    }
  }

  static Pending done() {
    auto operation = std::make_shared<RealOperation>();
    operation->done = true;
    return operation;
  }

  RealWorld& world_;
  int role_;
  const Role& plan_role_;
  RealRun run_;
  double marked_ = 0, computed_ = 0;
};

/// Tells those that serve that a training program has ended.
void say_over(RealWorld& world, int role) {
  Message over;
  over.tag = kOver;
  over.from = role;
  for (const Role& server : world.plan.roles) {
    for (int member = 0; !server.training && member < server.members; ++member) {
      world.mail.send(server.first_rank + member, over, {}, nullptr);
    }
  }
}

/// Until those that the program did not wait for are played too.
void finish_collectives(RealWorld& world) {
  const auto last = std::make_shared<Operation>();
  world.thread.submit([&world, last] { world.completions.post(last); });
  while (world.completions.next() != last) {
  }
}

}  // namespace

RealRun run_program(RealWorld& world, int run) {
  const int number = role_of(world.plan, world.transport.rank());
  world.device.begin();
  world.mail.begin(run, world.completions);
  if (world.parcels != nullptr) world.parcels->begin(world.completions);
  barrier(world.transport);
  if (number < 0) return {};
  world.transport.count_waits(&world.state.collectives_beat);
  if (world.delay > 0) sleep_until(now().wall + world.delay);
  const Role& role = world.plan.roles[static_cast<std::size_t>(number)];
  RealWorker worker(world, number);
  std::vector<Pending> overs;  // a server is over when all of these are
  for (int i = 0; !role.training && i < training_ranks(world.plan); ++i)
    overs.push_back(worker.start_receive(kOver, kAnyone, Array::none));
  const WorkTime before = world.device.worked();
  const Computing computing(world.leisure);
  Program program = role.program(worker);
  worker.begin();
  program.start();
  std::size_t ended = 0;
  while (!program.done() && (role.training || ended < overs.size())) {
    const Pending operation = world.completions.next();
    world.state.beat.fetch_add(1, std::memory_order_relaxed);
    if (!operation) continue;
    if (world.parcels != nullptr && world.parcels->still_coming(operation)) continue;
    if (operation->message.tag == kOver) ++ended;
    operation->complete();
  }
  world.mail.end();  // reads that the program left under way
  if (program.done() && program.error()) std::rethrow_exception(program.error());
  finish_collectives(world);
  world.transport.count_waits(&world.state.beat);
  if (role.training) say_over(world, number);
  world.device.finish();
  RealRun result = worker.take_run();
  result.worked = {world.device.worked().wall - before.wall, world.device.worked().cpu - before.cpu};
  return result;
}

}  // namespace stepcast
