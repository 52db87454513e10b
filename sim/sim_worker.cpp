#include "sim/sim_worker.hpp"

#include <algorithm>

namespace stepcast {
namespace {

bool all_alike(const Noise& noise) {
  return noise.jitter == Noise::Jitter::none && noise.straggler_share == 0;
}

const char* name_of(Work pass) {
  switch (pass) {
    case Work::forward:
      return "forward";
    case Work::backward:
      return "backward";
    case Work::update:
      return "update";
  }
  return "";
}

}  // namespace

SimWorker::SimWorker(SimWorld& world, int first, int members,
                     std::function<void(int, const StepShare&)> step_done)
    : world_(world), first_(first), count_(members), step_done_(std::move(step_done)) {
  members_.resize(all_alike(world.simulation.noise) ? 1 : static_cast<std::size_t>(members));
  draw_step();
}

void SimWorker::draw_step() {
  const Simulation& simulation = world_.simulation;
  for (std::size_t i = 0; i < members_.size(); ++i) {
    const int rank = first_ + static_cast<int>(i);
    const int device = simulation.devices[static_cast<std::size_t>(rank)];
    const int key = simulation.noise.per_node ? simulation.platform->node_of(device) : rank;
    members_[i].draw = draw(simulation.noise, simulation.seed, static_cast<std::uint32_t>(key),
                            static_cast<std::uint32_t>(step_), world_.times.samples());
  }
}

double SimWorker::latest() const {
  double latest = 0;
  for (const Member& member : members_) latest = std::max(latest, member.clock);
  return latest;
}

Pending SimWorker::busy_until(double work, const char* what) {
  auto operation = std::make_shared<SimOperation>();
  operation->kind = SimOperation::Kind::compute;
  const double started = world_.network.engine().now();
  world_.clock.at_work(work, [this, operation, started, what] {
    if (world_.timeline != nullptr) {
      world_.timeline->spans.push_back({what, "compute", first_, 0, started, world_.network.engine().now()});
    }
    operation->complete();
  });
  return operation;
}

Pending SimWorker::start_compute(Work pass, LayerRange layers) {
  for (Member& member : members_) {
    const double seconds = world_.times.seconds(pass, layers, member.draw);
    member.clock += seconds;
    member.work += seconds;
  }
  return busy_until(latest(), name_of(pass));
}

Pending SimWorker::start_pause(Seconds duration) {
  for (Member& member : members_) {
    const double seconds = member.draw.factor * duration.value;  // a slow host is slow in this too
    member.clock += seconds;
    member.work += seconds;
  }
  return busy_until(latest(), "pause");
}

Pending SimWorker::start_all_reduce(Bytes buffer) {
  return world_.all_reduces.join(all_reduces_++, count_, buffer);
}

Pending SimWorker::start_load(Bytes input) {
  return world_.loads.join(loads_++, count_, input);
}

void SimWorker::waited_for(const Operation& operation) {
  const auto kind = static_cast<const SimOperation&>(operation).kind;
  if (kind == SimOperation::Kind::compute) return;  // the clocks already stand where it ends
  if (kind == SimOperation::Kind::load) loading_ += std::max(0.0, operation.end - latest());
  for (Member& member : members_) member.clock = std::max(member.clock, operation.end);
}

void SimWorker::end_step() {
  StepShare share;
  share.members = count_;
  share.loading = loading_;
  const double weight = static_cast<double>(count_) / static_cast<double>(members_.size());
  for (Member& member : members_) {
    share.work_sum += weight * member.work;
    share.work_max = std::max(share.work_max, member.work);
    member.work = 0;
  }
  loading_ = 0;
  step_done_(step_, share);
  ++step_;
  draw_step();
}

}  // namespace stepcast
