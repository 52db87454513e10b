#include "validate/real_worker.hpp"

#include <functional>

#include "kernels/stopwatch.hpp"

namespace stepcast {
namespace {

double array_seconds(const Plan& plan) {
  double update = 0;
  for (const LayerSeconds& layer : plan.workloads.front().median) update += layer.update;
  return update / 5;  // array_work: SGD with momentum reads three arrays and writes two
}

/// With what is to be done when the program has waited for it.
struct RealOperation : Operation {
  std::function<void()> waited;
};

Pending done() {
  auto operation = std::make_shared<RealOperation>();
  operation->done = true;
  return operation;
}

}  // namespace

Pending RealWorker::start_compute(Work pass, LayerRange layers) {
  world_.device.compute(pass, layers);
  return done();
}

Pending RealWorker::start_local(const LocalWork& work) {
  if (work.run && world_.plan.no_arithmetic.empty() && world_.device.calculate(work.run)) return done();
  const double unit = array_seconds(world_.plan);
  world_.device.touch_arrays(unit > 0 ? work.duration.value / unit : 0, work.duration.value);
  return done();
}

Pending RealWorker::start_pause(Seconds duration) {
  world_.device.finish();
  world_.device.pause(duration.value);
  return done();
}

Pending RealWorker::start_load(Bytes) {
  return done();
}

Pending RealWorker::start_collective(int index) {
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

Pending RealWorker::start_send(int role, const Message& message) {
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

Pending RealWorker::start_receive(int tag, int role, Array into) {
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

void RealWorker::calculate(const Arithmetic& run) {
  if (run && world_.plan.no_arithmetic.empty()) world_.device.calculate(run);
}

void RealWorker::end_step() {
  world_.device.finish();
  run_.step_ends.push_back(now().wall);
  run_.compute_seconds.push_back(world_.device.worked().wall - computed_);
  computed_ = world_.device.worked().wall;
  world_.device.begin_step(static_cast<int>(run_.step_ends.size()));
  world_.state.beat.fetch_add(1, std::memory_order_relaxed);
  if (world_.step_ended) world_.step_ended(run_.step_ends.back() - run_.begin);
}

double RealWorker::mark(const char* phase) {
  const double seconds = now().wall - marked_;
  run_.records[phase].push_back(seconds);
  marked_ += seconds;
  return seconds;
}

void RealWorker::begin() {
  run_.begin = marked_ = now().wall;
  computed_ = world_.device.worked().wall;
}

void RealWorker::waited_for(const Operation& operation) {
  const auto& waited = static_cast<const RealOperation&>(operation).waited;
  if (waited) waited();
}

bool RealWorker::by_library(const Collective& collective) const {
  const auto& one = world_.plan.communicators.at(static_cast<std::size_t>(collective.communicator));
  return collective.kind == Collective::Kind::all_reduce && one.all_reduce.algorithm == Algorithm::mpi;
}

/// On the communication thread.
void RealWorker::carry(int index, const CollectiveWork& work, const std::vector<std::vector<Round>>& phases) {
  if (by_library(world_.plan.collectives[static_cast<std::size_t>(index)])) {
    world_.library_all_reduce(work.memory.data(), static_cast<std::int64_t>(work.memory.size()));
  } else if (world_.carry && work.on_device != nullptr) {
    carry_work(world_.carry, index, work, phases);
  } else {
    play_work(world_.transport, work, phases);
  }
}

}  // namespace stepcast
