#include "validate/run_program.hpp"

#include "kernels/stopwatch.hpp"
#include "validate/real_worker.hpp"
#include "validate/roles.hpp"
#include "validate/sleep_until.hpp"

namespace stepcast {
namespace {

constexpr int kOver = -1000;  // tag of the message that says that a training program has ended

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
