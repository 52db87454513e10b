#include "sim/simulate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <stdexcept>

#include "sim/all_reduces.hpp"
#include "sim/sim_worker.hpp"

namespace stepcast {
namespace {

/// Adds up what the programs report of each step.
class StepBook {
 public:
  StepBook(int members, const Engine& engine, const CollectiveQueue& all_reduces)
      : members_(members), engine_(engine), all_reduces_(all_reduces) {}

  std::vector<StepSeconds> steps;

  void add(int step, const StepShare& share) {
    StepShare& total = open_[step];
    total.members += share.members;
    total.work_sum += share.work_sum;
    total.work_max = std::max(total.work_max, share.work_max);
    total.loading = std::max(total.loading, share.loading);
    if (total.members == members_) close(step, total);
  }

 private:
  void close(int step, const StepShare& total) {
    StepSeconds seconds;
    seconds.seconds = engine_.now() - last_end_;
    seconds.compute = total.work_sum / members_;
    seconds.straggler = total.work_max - seconds.compute;
    seconds.loading = total.loading;
    seconds.exposed = std::max(0.0, seconds.seconds - total.work_max - total.loading);
    seconds.communication = all_reduces_.busy_seconds() - last_busy_;
    steps.push_back(seconds);
    last_end_ = engine_.now();
    last_busy_ = all_reduces_.busy_seconds();
    open_.erase(step);
  }

  int members_;
  const Engine& engine_;
  const CollectiveQueue& all_reduces_;
  std::map<int, StepShare> open_;
  double last_end_ = 0, last_busy_ = 0;
};

CollectiveQueue::Options all_reduce_options(const Simulation& simulation, const AllReduces& all_reduces) {
  CollectiveQueue::Options options;
  options.kind = SimOperation::Kind::all_reduce;
  options.members = static_cast<int>(simulation.devices.size());
  options.streams = simulation.communication.streams;
  options.in_flight = simulation.communication.in_flight;
  options.pattern = [&all_reduces](Bytes buffer) { return all_reduces.pattern(buffer); };
  options.segments = all_reduces.segments();
  return options;
}

CollectiveQueue::Options load_options(const Simulation& simulation, int pattern) {
  CollectiveQueue::Options options;
  options.kind = SimOperation::Kind::load;
  options.members = static_cast<int>(simulation.devices.size());
  options.pattern = [pattern](Bytes) { return pattern; };
  return options;
}

/// Starts the programs, runs the clock and checks that all came to their end.
void run_programs(const Simulation& simulation, std::vector<std::unique_ptr<SimWorker>>& workers,
                  Engine& engine) {
  std::vector<Program> programs;
  programs.reserve(workers.size());
  for (auto& worker : workers) programs.push_back(simulation.program(*worker));
  engine.at(0, [&] {
    for (Program& program : programs) program.start();
  });
  engine.run();
  for (std::size_t i = 0; i < programs.size(); ++i) {
    if (programs[i].error()) std::rethrow_exception(programs[i].error());
    if (!programs[i].done()) {
      throw std::logic_error(fmt::format("deadlock: program {} of {} waits for ever", i, programs.size()));
    }
  }
}

Timeline named_timeline(std::size_t programs, int workers, int streams) {
  Timeline timeline;
  for (std::size_t i = 0; i < programs; ++i) {
    timeline.processes.push_back(programs == 1 && workers > 1 ? fmt::format("slowest of {} workers", workers)
                                                              : fmt::format("worker {}", i));
  }
  timeline.tracks = {"compute"};
  for (int stream = 0; stream < streams; ++stream)
    timeline.tracks.push_back(fmt::format("communication {}", stream));
  timeline.tracks.push_back("data loading");
  return timeline;
}

}  // namespace

SimulationResult simulate(const Simulation& simulation) {
  const int workers = static_cast<int>(simulation.devices.size());
  const Topology topology(*simulation.platform);
  AllReduces all_reduces(simulation, topology);
  SimNetwork& network = all_reduces.network();
  network.start();

  ComputeClock clock(network.engine(), simulation.communication.compute_slowdown);
  const ComputeTimes times(*simulation.workload);
  CollectiveQueue reduces(network, clock, all_reduce_options(simulation, all_reduces));
  CollectiveQueue loads(network, clock, load_options(simulation, all_reduces.load_pattern()));
  SimWorld world{simulation, network, clock, times, reduces, loads, nullptr};
  StepBook book(workers, network.engine(), reduces);

  std::vector<std::unique_ptr<SimWorker>> programs;
  const int programs_wanted = simulation.fold ? 1 : workers;
  for (int i = 0; i < programs_wanted; ++i) {
    programs.push_back(
        std::make_unique<SimWorker>(world, i, workers / programs_wanted,
                                    [&](int step, const StepShare& share) { book.add(step, share); }));
  }
  SimulationResult result;
  if (simulation.timeline) {
    result.timeline = named_timeline(programs.size(), workers, simulation.communication.streams);
    world.timeline = reduces.timeline = loads.timeline = &result.timeline;
    reduces.first_track = 1;
    loads.first_track = 1 + simulation.communication.streams;
  }
  run_programs(simulation, programs, network.engine());
  result.steps = std::move(book.steps);
  result.form = all_reduces.form_name();
  result.algorithms = all_reduces.algorithm_names();
  result.events = network.engine().events();
  result.flows = network.engine().flows();
  return result;
}

}  // namespace stepcast
