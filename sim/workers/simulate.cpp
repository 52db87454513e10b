#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "sim/collectives/planned_collectives.hpp"
#include "sim/simulation.hpp"
#include "sim/workers/clock_run.hpp"
#include "sim/workers/sim_worker.hpp"
#include "strategies/plan/run_conditions.hpp"

namespace stepcast {
namespace {

/// A program and the workers that it stands for: members `first` .. `first + members - 1` of a role.
struct ProgramMembers {
  RoleId role;
  int first, members;
};

std::vector<ProgramMembers> program_members(const Simulation& simulation, bool folds) {
  std::vector<ProgramMembers> programs;
  for (std::size_t i = 0; i < simulation.plan->roles.size(); ++i) {
    const Role& role = simulation.plan->roles[i];
    const int count = folds ? 1 : role.members;
    for (int k = 0; k < count; ++k) programs.push_back({RoleId(i), k, role.members / count});
  }
  return programs;
}

/// Index of each rank in Communicator::ranks; -1 for ranks that are not in the communicator.
IdTable<RankId, int> positions(const Communicator& communicator, std::size_t ranks) {
  IdTable<RankId, int> position(ranks, -1);
  for (std::size_t i = 0; i < communicator.ranks.size(); ++i) position[communicator.ranks[i]] = i;
  return position;
}

/// Adds the queues of every communicator; those of one communicator share tracks in the timeline.
void add_queues(SimWorld& world) {
  int stream = 0;
  const Plan& plan = *world.simulation.plan;
  for (std::size_t i = 0; i < plan.communicators.size(); ++i) {
    const Communicator& communicator = plan.communicators[i];
    const CommunicatorId number(i);
    const bool joint = world.collectives.joint(number);
    for (int group = 0; group < (joint ? 1 : communicator.groups()); ++group) {
      CollectiveQueue::Options options;
      options.members = joint ? std::ssize(communicator.ranks) : communicator.size;
      options.streams = communicator.streams;
      options.in_flight = communicator.in_flight;
      options.pattern = [&world, group](CollectiveId id) { return world.collectives.pattern(id, group); };
      options.wait = [&plan](CollectiveId id) { return plan.collectives[id.index()].wait; };
      options.segments = world.collectives.fidelity().segments;
      options.first_stream = stream;
      world.queues[{number, group}] = std::make_unique<CollectiveQueue>(world.network, std::move(options));
    }
    stream += communicator.streams;
    world.position.push_back(positions(communicator, plan.endpoints.size()));
  }
}

/// Communication so far [s]: for each communicator the mean over its groups, plus the messages of all
/// programs, divided by the number of training workers in plans with a common step.
double busy_seconds(const SimWorld& world, int training) {
  std::map<CommunicatorId, std::pair<double, int>> sums;
  for (const auto& [key, queue] : world.queues) {
    sums[key.first].first += queue->busy_seconds();
    sums[key.first].second += 1;
  }
  double seconds = world.simulation.plan->asynchronous
                       ? world.messages.busy_seconds()
                       : world.messages.busy_seconds() / std::max(training, 1);
  for (const auto& [communicator, sum] : sums) seconds += sum.first / sum.second;
  return seconds;
}

/// Starts the programs, runs the clock and checks that all programs of training workers ended.
void run_to_end(std::vector<std::unique_ptr<SimWorker>>& workers, const std::vector<double>& starts,
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
      throw std::logic_error(
          fmt::format("deadlock: {} never ends, because it waits for an operation that nothing completes",
                      workers[i]->name()));
    }
  }
}

std::string rank_name(const Plan& plan, RankId rank) {
  const Role& role = plan.roles[role_of(plan, rank).index()];
  return role.members > 1 ? fmt::format("{} {}", role.name, role.member(rank)) : role.name;
}

TimelineCollective shown_collective(const Simulation& simulation, const CollectiveSchedules& schedules,
                                    CollectiveId id) {
  const Collective& collective = simulation.plan->collectives[id.index()];
  TimelineCollective shown;
  shown.kind = collective_kind_names()[ordinal(collective.kind)];
  shown.algorithm = schedules.algorithm(id);
  shown.bytes = collective.buffer.size.value;
  shown.communicator = collective.communicator.index();
  return shown;
}

/// A timeline without spans, with all that spans refer to.
Timeline named_timeline(const Simulation& simulation, const PlannedCollectives& collectives) {
  const Plan& plan = *simulation.plan;
  Timeline timeline;
  timeline.run_ranks = plan.endpoints.size();
  for (const int rank : simulation.timeline_ranks) {
    if (role_of(plan, RankId(rank)).exists()) timeline.ranks.push_back({rank, rank_name(plan, RankId(rank))});
  }
  for (const Communicator& one : plan.communicators) {
    timeline.communicators.push_back({{}, one.size});
    for (const RankId rank : one.ranks) timeline.communicators.back().ranks.push_back(rank.value);
  }
  for (std::size_t i = 0; i < plan.collectives.size(); ++i)
    timeline.collectives.push_back(shown_collective(simulation, collectives.schedules(), CollectiveId(i)));
  return timeline;
}

int training_members(const Plan& plan) {
  int members = 0;
  for (const Role& role : plan.roles) members += role.training ? role.members : 0;
  return members;
}

std::string link_sharing(const SimNetwork::Started& started, LinkSharing of_samples,
                         std::int64_t bottleneck) {
  const bool sampled = started.sampled > 0, by_simgrid = of_samples == LinkSharing::simgrid;
  std::vector<std::string> names;
  if (started.simgrid > 0 || (sampled && by_simgrid)) names.emplace_back("SimGrid");
  if (started.built_in > 0 || (sampled && !by_simgrid)) names.emplace_back("max-min");
  if (bottleneck > 0) names.emplace_back("bottleneck");
  if (started.modelled > 0) names.emplace_back("closed form");
  return fmt::format("{}", fmt::join(names, ", "));
}

/// The start date of each program [s].
std::vector<double> start_dates(const Simulation& simulation, const std::vector<ProgramMembers>& programs) {
  const Plan& plan = *simulation.plan;
  std::vector<double> starts;
  for (const ProgramMembers& program : programs) {
    const RankId rank = plan.roles[program.role.index()].rank(program.first);
    starts.push_back(start_seconds(plan, simulation.noise, rank));
  }
  return starts;
}

/// Sets what a result says about how collectives and messages were simulated.
void describe_communication(const PlannedCollectives& collectives, SimulationResult& result) {
  result.fidelity = collectives.fidelity().used();
  result.folding = collectives.folding();
  result.algorithms = collectives.schedules().algorithm_names();
  result.automatic = collectives.schedules().automatic_choices();
  result.routes = collectives.routes();
}

SimulationResult described_run_by_clocks(const Simulation& simulation,
                                         const PlannedCollectives& collectives) {
  SimulationResult result = run_by_clocks(simulation, collectives);
  describe_communication(collectives, result);
  result.link_sharing = collectives.traffic().collectives.empty() ? "" : "closed form";
  return result;
}

/// Runs the program of every worker with these collectives, on a clock that starts at 0.
/// @throws std::logic_error if the programs deadlock
SimulationResult run_programs(const Simulation& simulation, const PlannedCollectives& collectives,
                              const LinkOptions& options) {
  const Plan& plan = *simulation.plan;
  if (groups_have_clocks(collectives.traffic())) return described_run_by_clocks(simulation, collectives);
  SimNetwork network(collectives.patterns(), options);
  const Engine& engine = network.engine();

  const std::vector<ProgramMembers> programs = program_members(simulation, collectives.folding().folds);
  SimulatedMessages messages(collectives, network, programs.size());
  SimWorld world{simulation, collectives, network, messages, {}, {}, {}, {}, {}, 0, nullptr, nullptr};
  for (const Workload& workload : plan.workloads) world.times.emplace_back(workload);
  for (std::size_t i = 0; i < programs.size(); ++i) {
    if (programs[i].first == 0) world.programs.push_back(i);
  }
  add_queues(world);

  const int training = training_members(plan);
  StepStatistics statistics(
      training, programs.size(), [&engine] { return engine.now(); },
      [&world, training] { return busy_seconds(world, training); });
  SimulationResult result;
  if (!simulation.timeline_ranks.empty()) {
    result.timeline = named_timeline(simulation, collectives);
    world.timeline = messages.timeline = &result.timeline;
    for (auto& [key, queue] : world.queues) queue->timeline = &result.timeline;
  }
  if (simulation.logs_programs) {
    result.programs.resize(programs.size());
    world.logs = &result.programs;
  }
  std::vector<std::unique_ptr<SimWorker>> workers;
  for (const ProgramMembers& program : programs)
    workers.push_back(
        std::make_unique<SimWorker>(world, statistics, program.role, program.first, program.members));
  for (WorkerMemory* memory : simulation.memories) memory->begin(collectives.schedules().automatic_choices());
  run_to_end(workers, start_dates(simulation, programs), network.engine());
  result.steps = plan.asynchronous ? std::vector{statistics.steady_state(plan)} : statistics.steps();
  result.steady_counts = world.records.counts_at_end(statistics.first_to_end());
  result.records = world.records.take();
  result.seconds = engine.now();
  result.events = engine.events();
  describe_communication(collectives, result);
  result.link_sharing =
      link_sharing(network.started(), collectives.fidelity().link_sharing, messages.shared_flows());
  result.flows = network.flows() + messages.shared_flows();
  result.clock_moves = world.clock_moves;
  return result;
}

constexpr double kCloseEnough = 0.005;      // share of a run's time that contention may account for
constexpr double kSecondsPerWork = 0.2e-6;  // processor time of a unit of MaxMinSharing::work

/// The share by which a run without noise takes longer than with every collective at its lower bound. A rough
/// fidelity and a rough folding can be wrong only about how collectives slow each other down, so this share
/// bounds their error. Noise makes workers wait, which hides communication and takes most of the time of
/// large runs.
double contention_share(const Simulation& simulation, const PlannedCollectives& collectives,
                        const SimulationResult& result) {
  Simulation quiet = simulation;
  quiet.timeline_ranks.clear();
  quiet.logs_programs = false;
  quiet.noise = {};
  LinkOptions options = collectives.link_options();
  const double seconds =
      simulation.noise.is_none() ? result.seconds : run_programs(quiet, collectives, options).seconds;
  options.lower_bounds = true;
  const double least = run_programs(quiet, collectives, options).seconds;
  return least > 0 ? seconds / least - 1 : 0;
}

void set_close(Accuracy& accuracy) {
  if (accuracy == Accuracy::rough) accuracy = Accuracy::close;
}

/// A run with the fidelity and folding that the rules choose for a small budget.
struct CheapRun {
  SimulationResult result;
  bool close = true;
};

CheapRun cheap_run(const Simulation& simulation, const CollectiveSchedules& schedules) {
  const PlannedCollectives collectives(schedules, ComputeBudget::small);
  CheapRun run{run_programs(simulation, collectives, collectives.link_options())};
  // A run that learns changes the values in memory, so it cannot be repeated.
  if (!collectives.may_be_inaccurate() || !simulation.memories.empty()) return run;
  run.close = !collectives.fidelity().may_be_short &&
              contention_share(simulation, collectives, run.result) <= kCloseEnough;
  if (!run.close) return run;
  set_close(run.result.fidelity.accuracy);
  set_close(run.result.folding.accuracy);
  return run;
}

}  // namespace

// A point is simulated up to three times. The first run uses the cheapest fidelity and folding that the rules
// allow. If the rules do not know whether these are accurate, a second run with all collectives at their
// lower bounds shows how much contention can matter: at most 0.5 %, and the first result is called close.
// Otherwise a third run simulates every message, if a large budget (kLargeBudgetPerRun) is estimated to
// suffice; its result replaces the first one unless it exceeds that budget.
SimulationResult simulate(const Simulation& simulation) {
  const Topology topology(*simulation.platform);
  const CollectiveSchedules schedules(simulation, topology);
  CheapRun cheap = cheap_run(simulation, schedules);
  if (cheap.close) return std::move(cheap.result);
  const PlannedCollectives collectives(schedules, ComputeBudget::large);
  if (collectives.may_be_inaccurate()) return std::move(cheap.result);
  LinkOptions options = collectives.link_options();
  options.max_work = static_cast<std::int64_t>(kLargeBudgetPerRun / kSecondsPerWork);
  try {
    return run_programs(simulation, collectives, options);
  } catch (const MaxMinSharing::TooMuchWork&) {
    return std::move(cheap.result);
  }
}

}  // namespace stepcast
