#include "runtime/runs/real_worker.hpp"

#include <functional>
#include <utility>

#include "kernels/timing/step_timer.hpp"
#include "runtime/collectives/rank_collectives.hpp"
#include "runtime/transport/progress_thread.hpp"
#include "strategies/options/strategy.hpp"
#include "strategies/plan/plan.hpp"

namespace stepcast {
namespace {

/// True for a collective without bytes: all ranks of its group leave it together, as in the simulated world.
bool is_barrier(const Collective& collective) {
  return collective.buffer.size.value == 0;
}

/// Copies only what the phase sends: the rest of the memory may be older on the device or on the host.
void copy_sends_to_host(const CollectiveBinding& work, const std::vector<Round>& phase) {
  const DeviceMemory::Event packed = work.staging_device->record_event();
  work.staging_device->wait(packed);  // kernels may still read what the previous phase received
  for (const Round& round : phase) {
    for (const Transfer& transfer : round) {
      if (transfer.way == Transfer::Way::send)
        work.staging_device->to_host(packed, work.on_device + transfer.slice.begin,
                                     work.memory.data() + transfer.slice.begin, transfer.slice.size());
    }
  }
}

void copy_receives_to_device(const CollectiveBinding& work, const std::vector<Round>& phase) {
  for (const Round& round : phase) {
    for (const Transfer& transfer : round) {
      if (transfer.way == Transfer::Way::receive)
        work.staging_device->to_device(work.memory.data() + transfer.slice.begin,
                                       work.on_device + transfer.slice.begin, transfer.slice.size());
    }
  }
}

/// Executes a collective over a transport, with the hooks of the binding.
void execute_on_transport(Transport& transport, const CollectiveBinding& work,
                          const std::vector<std::vector<Round>>& phases) {
  if (work.fetch) work.fetch(work.memory);
  for (std::size_t phase = 0; phase < phases.size(); ++phase) {
    if (work.before_phase) work.before_phase(phase);
    if (work.staging_device != nullptr) copy_sends_to_host(work, phases[phase]);
    execute_rounds(transport, phases[phase], work.memory.data(), work.counted);
    if (work.staging_device != nullptr) copy_receives_to_device(work, phases[phase]);
    if (work.after_phase) work.after_phase(phase);
  }
  if (work.store) work.store(work.memory);
}

/// Executes a collective by a backend, in one call or, if the rank packs and unpacks around each phase, phase
/// by phase.
void run_on_backend(const CollectiveBackend& backend, CollectiveId id, const CollectiveBinding& work,
                    const std::vector<std::vector<Round>>& phases) {
  const std::int64_t elements = work.memory.size();
  if (work.staging_device == nullptr) return backend({id, work.on_device, elements, work.ready, &phases});
  for (std::size_t phase = 0; phase < phases.size(); ++phase) {
    if (work.before_phase) work.before_phase(phase);
    const std::vector<std::vector<Round>> one{phases[phase]};
    backend({id, work.on_device, elements, work.staging_device->record_event(), &one});
    if (work.after_phase) work.after_phase(phase);
  }
}

/// Time of one array of the parameters' size, from the time of an optimizer step.
double array_seconds(const Plan& plan) {
  return array_work(plan.workloads.front(), 1).value;
}

/// An operation with a function that is called when the program has waited for it.
struct RealOperation : Operation {
  std::function<void()> on_waited;
};

Pending done() {
  auto operation = std::make_shared<RealOperation>();
  operation->done = true;
  return operation;
}

}  // namespace

Pending RealWorker::start_compute(Work pass, LayerRange layers) {
  run_.loaded_bytes += std::exchange(loading_, 0);
  ++passes_;
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

Pending RealWorker::start_load(Bytes input) {
  if (world_.input == nullptr) return done();
  auto operation = std::make_shared<RealOperation>();
  loading_ += input.value;
  operation->on_waited = [this, bytes = input.value, begun = passes_] {
    if (passes_ == begun) loading_ -= bytes;
  };
  // A run ends only when its loads have ended, so `completions` outlives the loads. This worker may be
  // destroyed before them.
  world_.input->start(std::ceil(input.value),
                      [operation, &completions = world_.completions](std::exception_ptr error) {
                        operation->error = std::move(error);
                        completions.post(operation);
                      });
  return operation;
}

Pending RealWorker::start_collective(CollectiveId id) {
  const Collective& collective = world_.plan.collectives.at(id.index());
  CollectiveBinding work = world_.device.bind_collective(collective);
  const Slice owned = world_.collectives.owned_slice(id, work.memory.size());
  work.memory = work.memory.subspan(owned.begin, owned.size());
  if (work.on_device != nullptr) work.on_device += owned.begin;
  const auto& phases = world_.collectives.phases(
      id, work.uncompressed_elements < 0 ? owned.size() : work.uncompressed_elements);
  auto operation = std::make_shared<RealOperation>();
  operation->on_waited = std::move(work.on_waited);
  if (phases.empty() && !is_barrier(collective)) return done();
  world_.collective_thread.submit([this, id, operation, work = std::move(work), &phases] {
    try {
      execute_collective(id, work, phases);
    } catch (...) {
      operation->error = std::current_exception();
    }
    world_.completions.post(operation);
  });
  return operation;
}

Pending RealWorker::start_send(RoleId role, const Message& message) {
  const Role& to = world_.plan.roles.at(role.index());
  const RankId receiver = to.rank(to.members == 1 ? 0 : plan_role_.member(world_.transport.rank()));
  Message envelope = message;
  envelope.from = role_;
  auto operation = std::make_shared<RealOperation>();
  if (const std::int64_t floats =
          world_.device_payloads == nullptr ? 0 : world_.device.device_floats(message)) {
    const DevicePayloads::PayloadBuffer buffer = world_.device_payloads->acquire(floats);
    world_.device.copy_to_payload(message, buffer.memory.get());
    envelope.payload = world_.device_payloads->send(receiver, buffer, floats, operation);
    world_.messages.send(receiver, envelope, {}, nullptr);
    return operation;
  }
  const std::span<float> payload =
      message.buffer.array == Array::none ? std::span<float>() : world_.device.send_buffer(message);
  world_.messages.send(receiver, envelope, payload, operation);
  return operation;
}

Pending RealWorker::start_receive(MessageTag tag, RoleId role, Array into) {
  auto operation = std::make_shared<RealOperation>();
  operation->on_waited = [this, into, received = operation.get()] {
    Message message = received->message;
    if (message.buffer.array != Array::none && into != Array::none) message.buffer.array = into;
    if (message.payload.number == 0) return world_.device.on_received(message);
    DevicePayloads::PayloadBuffer buffer = world_.device_payloads->take_arrived(message.payload);
    world_.device.copy_from_payload(message, buffer.memory.get());
    world_.device_payloads->release(std::move(buffer));
  };
  world_.messages.receive(tag, role, operation, [this, tag, into](const Buffer& buffer) {
    if (buffer.array == Array::none) return std::span<float>();
    Message message;
    message.tag = tag;
    message.buffer = buffer;
    if (into != Array::none) message.buffer.array = into;
    return world_.device.receive_buffer(message);
  });
  return operation;
}

void RealWorker::end_step() {
  world_.device.finish();
  run_.step_ends.push_back(now().wall);
  run_.compute_seconds.push_back(world_.device.work_time().wall - computed_);
  computed_ = world_.device.work_time().wall;
  world_.device.begin_step(run_.step_ends.size());
  world_.state.heartbeat.fetch_add(1, std::memory_order_relaxed);
  if (world_.on_step_end) world_.on_step_end(run_.step_ends.back() - run_.begin);
}

double RealWorker::mark(const char* phase) {
  const double seconds = now().wall - marked_;
  run_.records[phase].push_back(seconds);
  marked_ += seconds;
  return seconds;
}

void RealWorker::begin() {
  run_.begin = marked_ = now().wall;
  computed_ = world_.device.work_time().wall;
}

void RealWorker::waited_for(const Operation& operation) {
  const auto& waited = static_cast<const RealOperation&>(operation).on_waited;
  if (waited) waited();
}

/// False if the device packs data around each phase, because the phases of a library's collective are its
/// own.
bool RealWorker::by_library(const Collective& collective, const CollectiveBinding& work) const {
  const auto& one = communicator_of(world_.plan, collective);
  return world_.library.sum && collective.kind == Collective::Kind::all_reduce &&
         one.all_reduce.algorithm == world_.library.algorithm &&
         collective.buffer.codec.kind == Compression::none && !work.before_phase && !work.after_phase;
}

/// Called on the progress thread of collectives.
void RealWorker::execute_collective(CollectiveId id, const CollectiveBinding& work,
                                    const std::vector<std::vector<Round>>& phases) {
  const Collective& collective = world_.plan.collectives[id.index()];
  if (is_barrier(collective)) {
    const Communicator& communicator = communicator_of(world_.plan, collective);
    return barrier(world_.transport, ranks_of_group(communicator, world_.transport.rank()));
  }
  if (by_library(collective, work)) {
    if (work.fetch) work.fetch(work.memory);
    world_.library.sum(work.memory,
                       ranks_of_group(communicator_of(world_.plan, collective), world_.transport.rank()));
    if (work.store) work.store(work.memory);
  } else if (world_.collective_backend && work.on_device != nullptr) {
    run_on_backend(world_.collective_backend, id, work, phases);
  } else {
    execute_on_transport(world_.transport, work, phases);
  }
}

namespace {

// Tag of the message that a training program sends to servers at its end.
constexpr MessageTag kProgramEnded{-1000};

/// The ranks that send this rank messages until they end: a server, which has no end of its own, waits for
/// the ends of all workers and of the servers after it, which may be its clients (sub-masters, a
/// coordinator).
bool is_client(const Role& client, RankId rank, const Role& server, RankId server_rank) {
  return !server.training && (client.training || rank.value > server_rank.value);
}

int clients_of(const Plan& plan, RankId own) {
  const Role& server = plan.roles[role_of(plan, own).index()];
  int count = 0;
  for (const Role& role : plan.roles) {
    for (int member = 0; member < role.members; ++member)
      count += is_client(role, role.rank(member), server, own) ? 1 : 0;
  }
  return count;
}

/// Tells the servers that this program has ended.
void notify_servers(RealWorld& world, RoleId role) {
  Message ended;
  ended.tag = kProgramEnded;
  ended.from = role;
  const Role& own = world.plan.roles[role.index()];
  for (const Role& server : world.plan.roles) {
    for (int member = 0; member < server.members; ++member) {
      if (is_client(own, world.transport.rank(), server, server.rank(member)))
        world.messages.send(server.rank(member), ended, {}, nullptr);
    }
  }
}

void finish(ProgressThread& thread, CompletionQueue& completions) {
  const auto last = std::make_shared<Operation>();
  thread.submit([&completions, last] { completions.post(last); });
  while (completions.next() != last) {
  }
}

/// Waits for all submitted collectives and loads, also for those that the program did not wait for.
void finish_threads(RealWorld& world) {
  finish(world.collective_thread, world.completions);
  if (world.input != nullptr) finish(world.input->thread(), world.completions);
}

/// When a run has failed, no thread may still execute work of its program. Work that has not
/// begun is discarded, and work that has begun is waited for. The object must be destroyed before the
/// program.
class DrainAfterFailure {
 public:
  explicit DrainAfterFailure(RealWorld& world) : world_(world) {}
  DrainAfterFailure(const DrainAfterFailure&) = delete;
  ~DrainAfterFailure() {
    if (ended_well) return;
    try {
      world_.messages.end_run();
      world_.collective_thread.discard();
      if (world_.input != nullptr) world_.input->thread().discard();
      finish_threads(world_);
    } catch (const std::exception&) {  // the first error counts
    }
  }

  bool ended_well = false;

 private:
  RealWorld& world_;
};

}  // namespace

RealRun run_program(RealWorld& world, int run) {
  const RoleId id = role_of(world.plan, world.transport.rank());
  world.device.begin();
  world.messages.begin_run(run, world.completions);
  if (world.device_payloads != nullptr) world.device_payloads->begin_run(world.completions);
  barrier(world.transport);
  if (!id.exists()) return {};
  world.transport.count_waits(&world.state.collectives_heartbeat);
  if (world.delay > 0) sleep_until(now().wall + world.delay);
  const Role& role = world.plan.roles[id.index()];
  RealWorker worker(world, id);
  // A server ends when it has received all of these and has answered all that its clients sent before them.
  const int clients = clients_of(world.plan, world.transport.rank());
  for (int i = 0; i < clients; ++i) worker.start_receive(kProgramEnded, kAnyone, Array::none);
  const WorkTime before = world.device.work_time();
  const ComputeScope computing(world.polling);
  Program program = role.program(worker);
  DrainAfterFailure drain(world);
  worker.begin();
  program.start();
  int ended = 0;
  const auto serves = [&] {
    return ended < clients || !world.completions.empty() || !world.messages.all_answered();
  };
  while (!program.done() && (role.training || serves())) {
    const Pending operation = world.completions.next();
    world.state.heartbeat.fetch_add(1, std::memory_order_relaxed);
    if (!operation) continue;
    if (world.device_payloads != nullptr && world.device_payloads->defer_until_arrival(operation)) continue;
    if (operation->message.tag == kProgramEnded) ++ended;
    operation->complete();
  }
  if (program.done() && program.error()) {
    // Before anything waits, because other ranks may never answer: the launcher then ends all ranks.
    if (world.on_failure) world.on_failure(program.error());
    std::rethrow_exception(program.error());
  }
  world.messages.end_run();  // the program may have left receives open
  finish_threads(world);
  drain.ended_well = true;
  world.transport.count_waits(&world.state.heartbeat);
  notify_servers(world, id);
  world.device.finish();
  RealRun result = worker.take_run();
  result.work_time = {world.device.work_time().wall - before.wall, world.device.work_time().cpu - before.cpu};
  return result;
}

}  // namespace stepcast
