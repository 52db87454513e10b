// The program that mpirun starts for each rank. It is separate from stepcast because SimGrid's library, which
// stepcast needs, defines functions with MPI's names.

#include <fmt/format.h>
#include <mpi.h>
#include <sched.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>

#include "core/cli/command_line.hpp"
#include "core/error.hpp"
#include "kernels/timing/host_info.hpp"
#include "runtime/ranks/shared_control_block.hpp"
#include "runtime/rendezvous/store.hpp"
#include "runtime/transport/shared_memory_transport.hpp"
#include "runtime/transport/tcp_transport.hpp"
#include "validate/cpu_rank/mpi_transport.hpp"
#include "validate/cpu_rank/rank_validate.hpp"
#include "validate/launch/core_shares.hpp"
#include "validate/launch/rank_agent.hpp"

namespace {

using namespace stepcast;

struct Options {
  std::string folder, control, cluster, transport = "own", mode;
  /// Numbers that an agent gives to a rank on one of several machines; -1: mpirun started the rank.
  int rank = -1, ranks = -1, local_rank = -1, local_ranks = -1;
  std::string address;    ///< at which such a rank listens
  std::string cpu_group;  ///< folder of the control groups of ranks that share cores; empty: none
  ValidationOptions validation;

  bool by_agent() const { return rank >= 0; }
};

/// Binds each rank to a core of its own if there are enough cores. Otherwise the system places the ranks,
/// unless they share cores: then they are bound to the cores in turn.
/// @return whether the rank may spin-wait: it has a core or turns of its own
bool bind_to_core(int rank, int ranks, bool share) {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return false;
  const int cores = CPU_COUNT(&allowed);
  if (cores < 1 || (cores < ranks && !share)) return false;
  int core = 0;
  for (int left = rank % cores; !CPU_ISSET(core, &allowed) || left-- > 0;) ++core;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(core, &one);
  return sched_setaffinity(0, sizeof one, &one) == 0;
}

/// Connects ranks of several machines, which exchange their endpoints by files that their agents carry.
std::unique_ptr<Transport> connected_hosts(const Options& options, int which) {
  const Store store(options.folder + "/store", options.rank, 60);
  const Listener listener(options.address);
  const std::string name = fmt::format("listener-{}", which);
  store.put(name,
            fmt::format("{} {} {}", options.address, listener.endpoint().port, listener.endpoint().key));
  std::vector<Endpoint> endpoints;
  for (int peer = 0; peer < options.ranks; ++peer) {
    std::istringstream words(store.get(peer, name));
    Endpoint one;
    words >> one.address >> one.port >> one.key;
    endpoints.push_back(one);
  }
  return connect_sockets(listener, RankId(options.rank), endpoints);
}

/// Connects the ranks by sockets, whose ports and keys they exchange by MPI.
std::unique_ptr<Transport> connected(const Cluster& cluster, int rank) {
  const auto address = [&](int peer) {
    return cluster.kind == Cluster::Kind::netcluster ? host_of(cluster, peer) : "127.0.0.1";
  };
  struct Place {
    std::int64_t port;
    std::uint64_t key;
  };
  const Listener listener(address(rank));
  const Place own{listener.endpoint().port, listener.endpoint().key};
  std::vector<Place> places(cluster.ranks);
  MPI_Allgather(&own, sizeof own, MPI_BYTE, places.data(), sizeof own, MPI_BYTE, MPI_COMM_WORLD);
  std::vector<Endpoint> endpoints;
  for (int peer = 0; peer < cluster.ranks; ++peer) {
    const Place& place = places[peer];
    endpoints.push_back({address(peer), static_cast<int>(place.port), place.key});
  }
  return connect_sockets(listener, RankId(rank), endpoints, cluster.window());
}

/// A number that Open MPI sets in the environment before MPI_Init, so that a rank that fails in MPI_Init can
/// be named; -1: another MPI.
int number_from_environment(const char* variable) {
  const char* text = std::getenv(variable);
  return text == nullptr ? -1 : std::atoi(text);
}

/// Opens the control block and registers this process as the rank, for the launcher's heartbeat monitor.
std::unique_ptr<SharedControlBlock> register_rank(const Options& options, int rank, int ranks) {
  auto control = SharedControlBlock::open(options.control, ranks);
  set_status(control->rank(RankId(rank)), "startup");
  control->rank(RankId(rank)).process.store(getpid());
  return control;
}

void run(const Options& options, SharedControlBlock& control, int rank, int ranks) {
  const Cluster cluster = read_cluster(options.cluster, ranks, options.transport);
  RankState& state = control.rank(RankId(rank));
  const bool share = options.validation.share_cores;
  const bool spins = options.by_agent() ? bind_to_core(options.local_rank, options.local_ranks, share)
                                        : bind_to_core(rank, ranks, share);
  set_kernel_threads(1);
  PollingPolicy polling;
  const auto make = [&](int which, double spin, bool (PollingPolicy::*may_poll)() const) {
    const auto polls = [&polling, may_poll] {
      polling.yield_to_loads();
      return (polling.*may_poll)();
    };
    if (!spins) spin = 0;
    // The ring memory, which MPI does not need, begins with wake flags.
    void* const wake_flags =
        options.by_agent() || cluster.sockets() ? nullptr : control.ring_memory(which).start;
    if (cluster.transport == TransportKind::mpi) return mpi_transport({spin, polls, wake_flags});
    if (options.by_agent()) return connected_hosts(options, which);
    return cluster.sockets()
               ? connected(cluster, rank)
               : shared_memory_transport(control.ring_memory(which), RankId(rank), ranks, spin, polls);
  };
  const auto transport = make(0, PollingPolicy::kCollectivesSpin, &PollingPolicy::may_poll_for_collectives),
             messages = make(1, PollingPolicy::kMessagesSpin, &PollingPolicy::may_poll_for_messages);
  transport->count_waits(&state.heartbeat);
  RankContext run{cluster, options.folder, control, state, polling, *transport, messages.get()};
  MpiAllReduce all_reduce;
  const LibraryAllReduce mpi{"mpi", Algorithm::mpi,
                             [&all_reduce](std::span<float> values, const std::vector<RankId>& group) {
                               all_reduce(values, group);
                             }};
  if (cluster.transport == TransportKind::mpi) run.library = mpi;
  if (!options.by_agent() || cluster.transport == TransportKind::mpi) run.compared.push_back(mpi);
  if (options.mode == "calibrate") rank_calibrate(run, false);
  if (options.mode == "validate") rank_validate(run, options.validation);
  set_status(state, "shutdown");
  barrier(*transport);
  state.finished.store(1);
}

/// Writes the error for the launcher, and ends all ranks. An agent's launcher does that itself.
void report_error(const Options& options, int rank, const char* kind, const std::exception& error) {
  std::ofstream(fmt::format("{}/rank-{}.error", options.folder, rank))
      << kind << " " << error_text(error) << "\n";
  if (options.by_agent()) std::_Exit(1);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

/// Gives the launcher time to name the rank that failed; this rank only lost its connection.
void wait_to_be_stopped() {
  std::this_thread::sleep_for(std::chrono::seconds(5));
}

void run_and_report(const Options& options, SharedControlBlock& control, int rank, int ranks) {
  try {
    run(options, control, rank, ranks);
  } catch (const PeerDisconnected& error) {
    wait_to_be_stopped();
    report_error(options, rank, "lost", error);
  } catch (const std::exception& error) {
    const ExitCode code = exit_code_of(error);
    report_error(options, rank,
                 code == ExitCode::bad_input    ? "input"
                 : code == ExitCode::over_limit ? "limit"
                 : code == ExitCode::partial    ? "lost"
                                                : "fault",
                 error);
  }
}

/// A rank that an agent started calls MPI only where MPI carries its messages: mpirun or srun then started
/// the agent.
void start_by_agent(const Options& options) {
  const auto control = register_rank(options, options.rank, options.ranks);
  const bool by_mpi = options.transport == "mpi";
  if (by_mpi) {
    int provided = 0, rank = 0, ranks = 0;
    MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (rank != options.rank || ranks != options.ranks) {
      report_error(
          options, options.rank, "input",
          InputError(fmt::format("--transport mpi: MPI says rank {} of {}, the launcher {} of {}; with srun, "
                                 "choose the MPI that stepcast was built with (srun --mpi=pmix)",
                                 rank, ranks, options.rank, options.ranks)));
    }
  }
  run_and_report(options, *control, options.rank, options.ranks);
  if (by_mpi) MPI_Finalize();
}

void start(const Options& options) {
  if (options.by_agent()) return start_by_agent(options);
  int rank = number_from_environment("OMPI_COMM_WORLD_RANK"),
      ranks = number_from_environment("OMPI_COMM_WORLD_SIZE"), provided = 0;
  std::unique_ptr<SharedControlBlock> control;
  if (rank >= 0 && ranks > rank) control = register_rank(options, rank, ranks);
  if (!options.cpu_group.empty()) {
    // Before MPI starts threads: the share of a group on a core becomes smaller with what it has on others.
    bind_to_core(rank, ranks, true);
    join_core_share(options.cpu_group, rank);
  }
  MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (!control) control = register_rank(options, rank, ranks);
  run_and_report(options, *control, rank, ranks);
  MPI_Finalize();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && std::string(argv[1]) == "agent") {
    try {
      return run_rank_agent(agent_options_of_input());
    } catch (const std::exception& error) {
      return report_failure("stepcast-rank", error);
    }
  }
  Options options;
  CommandLine line("stepcast-rank", "",
                   "One rank of stepcast calibrate or validate, which start it by mpirun.");
  const Command command = line.command();
  command.add_option("--folder", options.folder).required();
  command.add_option("--control", options.control).required();
  command.add_option("--cluster", options.cluster).required();
  command.add_option("--transport", options.transport);
  command.add_option("--rank", options.rank);
  command.add_option("--ranks", options.ranks);
  command.add_option("--local-rank", options.local_rank);
  command.add_option("--local-ranks", options.local_ranks);
  command.add_option("--address", options.address);
  command.add_option("--cpu-group", options.cpu_group);
  command.add_option("mode", options.mode).required().one_of({"calibrate", "validate"});
  command.add_option("--scenario", options.validation.scenario);
  command.add_option("--set", options.validation.settings).one_value();
  command.add_option("--repeats", options.validation.repeats);
  command.add_option("--forecasts", options.validation.forecasts);
  command.add_flag("--sleep", options.validation.sleep);
  command.add_flag("--measured", options.validation.measured);
  command.add_flag("--accept-disturbed", options.validation.accept_disturbed);
  command.add_flag("--share-cores", options.validation.share_cores);
  command.callback([&] { start(options); });
  return line.run(argc, argv);
}
