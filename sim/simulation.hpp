#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "core/timeline.hpp"
#include "platforms/topology.hpp"
#include "sim/program_log.hpp"
#include "strategies/plan/plan.hpp"
#include "strategies/plan/run_conditions.hpp"

namespace stepcast {

/// Arrays and kernels behind one rank of a simulation that learns: its program then computes with real
/// values, while the clock stays the simulated one. The arithmetic of an operation is done when the operation
/// starts.
class WorkerMemory {
 public:
  virtual ~WorkerMemory() = default;

  /// Called once, before the programs start. @param choices  algorithms that `all_reduce: automatic` chose
  virtual void begin(const AllReduceChoices& choices) = 0;
  virtual void compute(Work pass, LayerRange layers) = 0;
  virtual void calculate(const Arithmetic& run) = 0;
  /// The rank's program calls a collective. Its values move when the last rank of the group has called it.
  /// @param call  number of earlier calls that the rank made on the collective's communicator
  /// @returns what is done when the program has waited for the collective; may be empty
  virtual std::function<void()> start_collective(CollectiveId collective, std::size_t call) = 0;
  /// The values that a message sends.
  virtual std::span<float> send_buffer(const Message& message) = 0;
  /// The program has received a message with these values.
  virtual void receive(const Message& message, std::span<const float> values) = 0;
  /// Called when the rank's program has ended a step. @param seconds  simulated time [s]
  virtual void step_ended(double seconds) = 0;
};

/// Memories by rank of a plan. If the list is empty, the simulation counts bytes and moves no values.
using WorkerMemories = std::vector<WorkerMemory*>;

/// Everything a simulation needs. Plain data; the platform and the plan must outlive it.
struct Simulation {
  const Platform* platform = nullptr;
  LinkBandwidths bandwidths;
  const Plan* plan = nullptr;
  double latency_factor = 1;  ///< multiplies every latency and message overhead of the network
  double compute_factor = 1;  ///< multiplies all compute and arithmetic times, not pauses
  Noise noise;
  std::uint64_t seed = 1;
  Fidelity fidelity = Fidelity::automatic;
  LinkSharing link_sharing = LinkSharing::automatic;
  /// Folding::never gives each worker its own program: the exact reference.
  Folding fold = Folding::automatic;
  std::vector<int> timeline_ranks;  ///< ranks whose activities are recorded, ascending
  bool logs_programs = false;       ///< the result has a log of each program
  WorkerMemories memories;          ///< if not empty, the run learns and is not folded
};

/// The parts of the time of one step [s]. seconds = compute + host + waiting + loading +
/// exposed.
struct StepSeconds {
  double seconds = 0;
  double compute = 0;        ///< mean over workers
  double host = 0;           ///< waiting for kernels that the host has not issued yet, mean over workers
  double waiting = 0;        ///< how much longer both take on the slowest worker than on the mean
  double loading = 0;        ///< time spent waiting for input
  double exposed = 0;        ///< communication that compute does not hide, and the slow-down of compute by it
  double communication = 0;  ///< total duration of the collectives of a group, and of a worker's messages
};

/// The closeness of a run's fidelity or folding to a simulation of every message of every worker.
enum class Accuracy {
  exact,  ///< simulates every message, or is known before the run to be within 1 % of that
  close,  ///< the run has shown that contention accounts for at most 0.5 % of its time
  rough,  ///< no bound of the error is known
};

/// The way in which the collectives and messages of a run were simulated.
struct UsedFidelity {
  Fidelity fidelity = Fidelity::message;
  bool sampled = false;  ///< durations of collectives come from samples of their rounds (sampled_time)
  bool uses_bottleneck_sharing = false;  ///< single messages used BottleneckSharing
  Accuracy accuracy = Accuracy::exact;
};

/// True if one program stood for all workers of a role.
struct UsedFolding {
  bool folds = true;
  Accuracy accuracy = Accuracy::exact;
};

/// Text of the column `fidelity`, such as "message", "message, sampled" or "coupled, roughly".
std::string to_text(const UsedFidelity& fidelity);

/// Text of the column `folding`: "folded", "folded, closely", "folded, roughly" or "unfolded".
std::string to_text(const UsedFolding& folding);

struct SimulationResult {
  std::vector<StepSeconds> steps;  ///< an asynchronous plan has one: the mean of its steady state
  Records records;
  /// Asynchronous plans: number of records of each name before the first worker ended its last step.
  std::map<std::string, std::size_t> steady_counts;
  double seconds = 0;  ///< duration of the whole run
  UsedFidelity fidelity;
  UsedFolding folding;
  /// The solvers that shared the bandwidth of links among flows: "SimGrid", "max-min", "bottleneck", "closed
  /// form" or several of them; empty if there was no flow.
  std::string link_sharing;
  std::string algorithms;      ///< algorithms of the all-reduces, such as "ring" or "double_tree, ring"
  AllReduceChoices automatic;  ///< algorithms that `all_reduce: automatic` chose
  std::int64_t events = 0, flows = 0;
  std::int64_t routes = 0;  ///< routes computed before the run: one for each edge of each candidate schedule
  /// Number of times that a worker's clock moved: once per layer if each layer has its own jitter.
  std::int64_t clock_moves = 0;
  Timeline timeline;
  std::vector<ProgramLog> programs;  ///< with Simulation::logs_programs
};

/// Runs the program of every worker on the simulated cluster. A process can have one engine that starts flows
/// at a time, so calls must not overlap (see Engine).
/// @throws std::logic_error if the programs deadlock
SimulationResult simulate(const Simulation& simulation);

}  // namespace stepcast
