#include "sim/play_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "sim/sim_worker.hpp"
#include "strategies/own_pace.hpp"

namespace stepcast {
namespace {

/// A program to start: members `first` .. `first + members - 1` of a role.
struct Part {
  int role, first, members;
};

std::vector<Part> parts_of(const Simulation& simulation, bool folds) {
  std::vector<Part> parts;
  for (std::size_t i = 0; i < simulation.plan->roles.size(); ++i) {
    const Role& role = simulation.plan->roles[i];
    const int count = folds ? 1 : role.members;
    for (int k = 0; k < count; ++k) parts.push_back({static_cast<int>(i), k, role.members / count});
  }
  return parts;
}

std::vector<int> positions(const Communicator& communicator, std::size_t ranks) {
  std::vector<int> position(ranks, -1);
  for (std::size_t i = 0; i < communicator.ranks.size(); ++i)
    position[static_cast<std::size_t>(communicator.ranks[i])] = static_cast<int>(i);
  return position;
}

/// Queues of every communicator; those of one share tracks in the timeline.
void add_queues(SimWorld& world) {
  int track = 1;
  const Plan& plan = *world.simulation.plan;
  for (std::size_t i = 0; i < plan.communicators.size(); ++i) {
    const Communicator& communicator = plan.communicators[i];
    const int number = static_cast<int>(i);
    const bool joint = world.traffic.joint(number);
    for (int group = 0; group < (joint ? 1 : communicator.groups()); ++group) {
      CollectiveQueue::Options options;
      options.members = joint ? static_cast<int>(communicator.ranks.size()) : communicator.size;
      options.streams = communicator.streams;
      options.in_flight = communicator.in_flight;
      options.pattern = [&world, group](int index) { return world.traffic.pattern(index, group); };
      options.segments = world.traffic.form().segments;
      options.name = "collective";
      options.first_track = track;
      world.queues[{number, group}] =
          std::make_unique<CollectiveQueue>(world.traffic.network(), std::move(options));
    }
    track += communicator.streams;
    world.position.push_back(positions(communicator, plan.endpoints.size()));
  }
}

/// Communication so far: of each communicator the mean over its groups, and messages a training worker.
double busy_seconds(const SimWorld& world, int training) {
  std::map<int, std::pair<double, int>> sums;
  for (const auto& [key, queue] : world.queues) {
    sums[key.first].first += queue->busy_seconds();
    sums[key.first].second += 1;
  }
  double seconds = world.simulation.plan->asynchronous ? world.mail.busy_seconds()
                                                       : world.mail.busy_seconds() / std::max(training, 1);
  for (const auto& [communicator, sum] : sums) seconds += sum.first / sum.second;
  return seconds;
}

/// Starts the programs, runs the clock and checks that all came to their end.
void run_programs(std::vector<std::unique_ptr<SimWorker>>& workers, const std::vector<double>& starts,
                  Engine& engine) {
  std::vector<Program> programs;
  programs.reserve(workers.size());
  for (auto& worker : workers) programs.push_back(worker->program());
  engine.at(0, [&] {
    for (std::size_t i = 0; i < programs.size(); ++i) {
      if (starts[i] == 0) programs[i].start();
    }
  });
  for (std::size_t i = 0; i < programs.size(); ++i) {
    if (starts[i] > 0) engine.at(starts[i], [&programs, i] { programs[i].start(); });
  }
  engine.run();
  for (std::size_t i = 0; i < programs.size(); ++i) {
    if (programs[i].error()) std::rethrow_exception(programs[i].error());
    if (!programs[i].done() && workers[i]->role().training) {
      throw std::logic_error(fmt::format("deadlock: {} waits for ever", workers[i]->name()));
    }
  }
}

Timeline named_timeline(const std::vector<std::unique_ptr<SimWorker>>& workers, const Plan& plan) {
  Timeline timeline;
  for (const auto& worker : workers) timeline.processes.push_back(worker->name());
  timeline.tracks = {"compute"};
  for (const Communicator& communicator : plan.communicators) {
    for (int stream = 0; stream < communicator.streams; ++stream)
      timeline.tracks.push_back(fmt::format("communication {}", timeline.tracks.size() - 1));
  }
  timeline.tracks.push_back("data loading");
  return timeline;
}

int training_members(const Plan& plan) {
  int members = 0;
  for (const Role& role : plan.roles) members += role.training ? role.members : 0;
  return members;
}

}  // namespace

SimulationResult play_run(const Simulation& simulation, Collectives& traffic) {
  const Plan& plan = *simulation.plan;
  traffic.network().start();
  const Engine& engine = traffic.network().engine();

  const std::vector<Part> parts = parts_of(simulation, traffic.folding().folds);
  Mail mail(traffic, simulation, parts.size());
  SimWorld world{simulation, traffic, mail, {}, {}, {}, {}, CollectiveValues(plan), {}, 0, nullptr};
  for (const Workload& workload : plan.workloads) world.times.emplace_back(workload);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].first == 0) world.programs.push_back(i);
  }
  add_queues(world);

  const int training = training_members(plan);
  StepBook book(
      training, parts.size(), [&engine] { return engine.now(); },
      [&world, training] { return busy_seconds(world, training); });
  std::vector<std::unique_ptr<SimWorker>> workers;
  for (const Part& part : parts)
    workers.push_back(std::make_unique<SimWorker>(world, book, part.role, part.first, part.members));

  SimulationResult result;
  if (simulation.timeline) {
    result.timeline = named_timeline(workers, plan);
    world.timeline = &result.timeline;
    for (auto& [key, queue] : world.queues) queue->timeline = &result.timeline;
    for (auto& worker : workers) worker->draw_loads(&result.timeline);
  }
  std::vector<double> starts;
  for (const Part& part : parts) {
    const int rank = plan.roles[static_cast<std::size_t>(part.role)].first_rank + part.first;
    starts.push_back(start_seconds(plan, simulation.noise, rank));
  }
  run_programs(workers, starts, traffic.network().engine());
  result.steps = plan.asynchronous ? std::vector<StepSeconds>{book.steady_state()} : book.steps();
  result.steady_counts = world.records.counts_at_end(book.first_to_end());
  result.records = world.records.take();
  result.seconds = engine.now();
  result.form = traffic.form().name;
  result.folding = traffic.folding().name;
  result.algorithms = traffic.algorithm_names();
  result.events = engine.events();
  result.flows = traffic.network().flows() + mail.shared_flows();
  result.routes = traffic.routes();
  result.clock_moves = world.clock_moves;
  return result;
}

}  // namespace stepcast
