// What mpirun starts, once a rank. A program of its own because SimGrid's library, which stepcast needs, has
// functions of MPI's names.

#include <fmt/format.h>
#include <mpi.h>
#include <sched.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <thread>

#include "core/error.hpp"
#include "kernels/processor.hpp"
#include "validate/control.hpp"
#include "validate/rank_calibrate.hpp"
#include "validate/rank_validate.hpp"
#include "validate/shared_rings.hpp"
#include "validate/sockets.hpp"

namespace {

using namespace stepcast;

struct Options {
  std::string folder, control, cluster, mode;
  ValidationOptions validation;
};

/// A core each, while there are enough; what shares a core anyway is left to the system.
bool bind_to_core(int rank, int ranks) {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0 || CPU_COUNT(&allowed) < ranks) return false;
  int core = 0;
  for (int left = rank; !CPU_ISSET(core, &allowed) || left-- > 0;) ++core;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(core, &one);
  return sched_setaffinity(0, sizeof one, &one) == 0;
}

/// Ranks tell each other where they listen; after this MPI carries nothing that is measured.
std::unique_ptr<Transport> connected(const Cluster& cluster, int rank) {
  const auto address = [&](int peer) {
    return cluster.kind == Cluster::Kind::netcluster ? host_of(cluster, peer) : "127.0.0.1";
  };
  const Listener listener(address(rank));
  int port = listener.endpoint().port;
  std::vector<int> ports(static_cast<std::size_t>(cluster.ranks));
  MPI_Allgather(&port, 1, MPI_INT, ports.data(), 1, MPI_INT, MPI_COMM_WORLD);
  std::vector<Endpoint> endpoints;
  for (int peer = 0; peer < cluster.ranks; ++peer)
    endpoints.push_back({address(peer), ports[static_cast<std::size_t>(peer)]});
  return connect_sockets(listener, rank, endpoints, cluster.window());
}

/// Open MPI tells ranks who they are before MPI_Init, where much can happen; -1: it is not Open MPI.
int number_from(const char* variable) {
  const char* text = std::getenv(variable);
  return text == nullptr ? -1 : std::atoi(text);
}

/// Tells the process that watches whom to watch.
std::unique_ptr<Control> introduced(const Options& options, int rank, int ranks) {
  auto control = Control::open(options.control, ranks);
  say(control->rank(rank), "its start");
  control->rank(rank).process.store(getpid());
  return control;
}

void run(const Options& options, Control& control, int rank, int ranks) {
  const Cluster cluster = read_cluster(options.cluster, ranks);
  RankState& state = control.rank(rank);
  const bool own_core = bind_to_core(rank, ranks);
  set_kernel_threads(1);
  Leisure leisure;
  const auto make = [&](int which, double spin, bool (Leisure::*at_leisure)() const) {
    return cluster.sockets()
               ? connected(cluster, rank)
               : shared_memory_transport(control.rings(which), rank, ranks, own_core ? spin : 0,
                                         [&leisure, at_leisure] { return (leisure.*at_leisure)(); });
  };
  // Who carries messages has just given the program what it waited for: it leaves it the core.
  const auto transport = make(0, 20e-6, &Leisure::for_collectives),
             mail = make(1, 1e-6, &Leisure::for_messages);
  transport->count_waits(&state.beat);
  RankRun run{cluster, options.folder, control, state, leisure, *transport, mail.get(), {}};
  run.library_all_reduce = [](float* buffer, std::int64_t elements) {
    MPI_Allreduce(MPI_IN_PLACE, buffer, static_cast<int>(elements), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  };
  if (options.mode == "calibrate") rank_calibrate(run, false);
  if (options.mode == "validate") rank_validate(run, options.validation);
  say(state, "its end");
  barrier(*transport);
  state.finished.store(1);
}

/// For the process that watches; ends all ranks.
void complain(const Options& options, int rank, const char* kind, const std::exception& error) {
  std::ofstream(fmt::format("{}/rank-{}.error", options.folder, rank)) << kind << " " << error.what() << "\n";
  MPI_Abort(MPI_COMM_WORLD, 1);
}

/// For who watches to say which rank is gone and what it did; this one is to blame for nothing.
void wait_for_the_end() {
  std::this_thread::sleep_for(std::chrono::seconds(5));
}

void run_and_complain(const Options& options, Control& control, int rank, int ranks) {
  try {
    run(options, control, rank, ranks);
  } catch (const PeerGone& error) {
    wait_for_the_end();
    complain(options, rank, "fault", error);
  } catch (const InputError& error) {
    complain(options, rank, "input", error);
  } catch (const std::exception& error) {
    complain(options, rank, "fault", error);
  }
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("One rank of stepcast calibrate or validate, which start it by mpirun.", "stepcast-rank");
  app.add_option("--folder", options.folder)->required();
  app.add_option("--control", options.control)->required();
  app.add_option("--cluster", options.cluster)->required();
  app.add_option("mode", options.mode)->required()->check(CLI::IsMember({"calibrate", "validate"}));
  app.add_option("--scenario", options.validation.scenario);
  app.add_option("--set", options.validation.settings)->allow_extra_args(false);
  app.add_option("--repeats", options.validation.repeats);
  app.add_flag("--sleep", options.validation.sleep);
  app.add_flag("--accept-disturbed", options.validation.accept_disturbed);
  CLI11_PARSE(app, argc, argv);
  int rank = number_from("OMPI_COMM_WORLD_RANK"), ranks = number_from("OMPI_COMM_WORLD_SIZE"), provided = 0;
  std::unique_ptr<Control> control;
  if (rank >= 0 && ranks > rank) control = introduced(options, rank, ranks);
  MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (!control) control = introduced(options, rank, ranks);
  run_and_complain(options, *control, rank, ranks);
  MPI_Finalize();
  return 0;
}
