#include "validate/launch/launcher.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <optional>
#include <sstream>
#include <thread>

#include "core/error.hpp"
#include "core/os/files.hpp"
#include "core/os/folders.hpp"
#include "runtime/ranks/shared_control_block.hpp"
#include "scenarios/reader/library.hpp"
#include "strategies/plan/plan.hpp"
#include "validate/launch/core_shares.hpp"
#include "validate/launch/launch_failure.hpp"
#include "validate/launch/rank_agent.hpp"
#include "validate/launch/rank_processes.hpp"

namespace stepcast {
namespace {

/// Ranks reach each other and mpirun over the cluster's own network, one in each namespace.
void add_hosts(const Cluster& cluster, std::vector<std::string>& command) {
  std::string hosts;
  for (int rank = 0; rank < cluster.ranks; ++rank) {
    hosts += (rank == 0 ? "" : ",") + host_of(cluster, rank);
  }
  const auto agent = data_folder() / "tools" / "netcluster";
  for (const std::string& word :
       {std::string("--host"), hosts, std::string("--mca"), std::string("plm_rsh_agent"),
        agent.string() + " agent", std::string("--mca"), std::string("btl"), std::string("tcp,self"),
        std::string("--mca"), std::string("oob_tcp_if_include"), std::string("10.87.0.0/24"),
        std::string("--mca"), std::string("btl_tcp_if_include"), std::string("10.87.0.0/24"),
        std::string("--mca"), std::string("btl_tcp_sndbuf"), std::to_string(cluster.window())}) {
    command.push_back(word);
  }
}

/// MPI uses shared memory between ranks of one machine, or sockets of the loopback where the cluster consists
/// of sockets. mpirun's own sockets are bound to all interfaces whatever they are told, so its processes also
/// have a network namespace of their own where the system allows it (RankProcesses).
void add_loopback(const Cluster& cluster, std::vector<std::string>& command) {
  for (const char* word : {"--mca", "btl", cluster.sockets() ? "tcp,self" : "vader,self", "--mca",
                           "oob_tcp_if_include", "lo", "--mca", "btl_tcp_if_include", "lo"})
    command.emplace_back(word);
}

/// Full path of a program in PATH; empty if there is none.
std::filesystem::path find_program(const std::string& name) {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "" : path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    auto file = std::filesystem::path(folder) / name;
    if (access(file.c_str(), X_OK) == 0) return file;
  }
  return {};
}

}  // namespace

std::vector<std::string> rank_arguments(const ValidationOptions& options) {
  std::vector<std::string> words{"--scenario", std::filesystem::absolute(options.scenario).string(),
                                 "--repeats", std::to_string(options.repeats)};
  for (const std::string& setting : options.settings) words.insert(words.end(), {"--set", setting});
  if (options.forecasts > 1) words.insert(words.end(), {"--forecasts", std::to_string(options.forecasts)});
  if (options.sleep) words.push_back("--sleep");
  if (options.measured) words.emplace_back("--measured");
  if (options.accept_disturbed) words.emplace_back("--accept-disturbed");
  if (options.point >= 0) words.insert(words.end(), {"--point", std::to_string(options.point)});
  if (options.share_cores) words.emplace_back("--share-cores");
  return words;
}

namespace {

/// The command line that starts all ranks by mpirun. @throws InputError if a program is not installed
/// @param sessions  folder for MPI's own files
/// @param shares    of cores that the ranks get; null: each has a core of its own
std::vector<std::string> rank_command(const RankJob& job, const std::filesystem::path& control,
                                      const std::filesystem::path& sessions, const CoreShares* shares) {
  const auto mpirun = find_program("mpirun");
  if (mpirun.empty())
    throw InputError("mpirun not found, which starts the ranks; install it (apt install openmpi-bin)");
  const std::string ranks = std::to_string(job.cluster.ranks);
  std::vector<std::string> command{mpirun.string(), "-n", ranks, "--oversubscribe", "--bind-to", "none"};
  if (job.cluster.kind == Cluster::Kind::netcluster) {
    add_hosts(job.cluster, command);
    // The daemons of Open MPI have folders of their agents: when all make the same one at once, some fail.
    command.insert(command.begin(), {find_program("env").string(), "TMPDIR=" + sessions.string()});
  } else {
    add_loopback(job.cluster, command);
    command.insert(command.end(), {"--mca", "orte_tmpdir_base", sessions.string()});
  }
  for (const auto& word :
       {std::string("--mca"), std::string("btl_vader_backing_directory"), control.parent_path().string(),
        rank_program().string(), std::string("--folder"), job.folder.string(), std::string("--control"),
        control.string(), std::string("--cluster"), job.cluster.name, std::string("--transport"),
        transport_names()[ordinal(job.cluster.transport)]}) {
    command.push_back(word);
  }
  if (shares != nullptr) command.insert(command.end(), {"--cpu-group", shares->folder().string()});
  command.insert(command.end(), job.arguments.begin(), job.arguments.end());
  return command;
}

/// The command lines of the agents of all ranks: by ssh, or only that of rank 0 where mpirun or srun has
/// started the other ranks. No shell reads them here; the shell that ssh starts on a host reads only the
/// program's path.
std::vector<std::vector<std::string>> agent_commands(const RemoteRanks& remote) {
  const std::string program = rank_program().string();
  if (remote.hosts.empty()) return {{program, "agent"}};
  const auto plain = [](unsigned char c) {
    return std::isalnum(c) != 0 || std::string("/._+-").find(static_cast<char>(c)) != std::string::npos;
  };
  if (!std::ranges::all_of(program, plain))
    throw InputError(fmt::format(
        "{}: expected a path of letters, digits, '/', '.', '_', '+' and '-' for --hosts", program));
  const auto rsh = remote.rsh.find('/') == std::string::npos ? find_program(remote.rsh)
                                                             : std::filesystem::path(remote.rsh);
  if (access(rsh.c_str(), X_OK) != 0)
    throw InputError(fmt::format("--rsh: expected a program, got \"{}\"", remote.rsh));
  std::vector<std::vector<std::string>> commands;
  for (const Host& host : remote.hosts) {
    std::vector<std::string> command{rsh.string()};
    if (rsh.filename() == "ssh") command.insert(command.end(), {"-T", "-o", "BatchMode=yes"});
    command.insert(command.end(), {host.name, program, "agent"});
    for (int slot = 0; slot < host.slots; ++slot) commands.push_back(command);
  }
  return commands;
}

/// Arguments of stepcast-rank for all remote ranks. The scenario is the file's name, which an agent
/// completes.
std::vector<std::string> remote_arguments(const RankJob& job) {
  std::vector<std::string> words{"--cluster", job.cluster.name, "--transport",
                                 transport_names()[ordinal(job.cluster.transport)]};
  words.insert(words.end(), job.arguments.begin(), job.arguments.end());
  const auto scenario = std::ranges::find(words, "--scenario");
  if (scenario + 1 < words.end()) scenario[1] = job.remote->scenario.filename().string();
  return words;
}

using namespace std::chrono_literals;

/// True if a condition holds for all ranks.
bool all_ranks(const SharedControlBlock& control, const std::function<bool(const RankState&)>& holds) {
  for (const RankId rank : first_ranks(control.ranks())) {
    if (!holds(control.rank(rank))) return false;
  }
  return true;
}

void set_host_names(const SharedControlBlock& control, const RankJob& job) {
  std::vector<std::string> hosts;
  for (int rank = 0; !job.remote && rank < job.cluster.ranks; ++rank)
    hosts.push_back(host_of(job.cluster, rank));
  for (const Host& host : job.remote ? job.remote->hosts : std::vector<Host>{})
    hosts.insert(hosts.end(), host.slots, host.name);
  hosts.resize(std::min<std::size_t>(hosts.size(), job.cluster.ranks));
  for (std::size_t rank = 0; rank < hosts.size(); ++rank)
    hosts[rank].copy(control.rank(RankId(rank)).host, sizeof RankState::host - 1);
}

/// One launch of all ranks, from their start to their end.
class Launch {
 public:
  /// Agents on other machines end their ranks and remove their folders, if they get the time to.
  ~Launch() {
    if (!rendezvous_) return;
    rendezvous_.reset();
    ranks_.wait_for_exit(5s);
  }
  Launch(const Launch&) = delete;
  explicit Launch(const RankJob& job)
      : job_(job),
        shared_("/dev/shm"),
        control_(made_control()),
        shares_(job.share_cores ? std::make_unique<CoreShares>(job.cluster.ranks) : nullptr),
        rendezvous_(rendezvous()),
        ranks_(*control_, commands(), log(),
               job.commands || job.remote || job.cluster.kind == Cluster::Kind::netcluster
                   ? RankNetwork::of_the_machine
                   : RankNetwork::loopback_alone,
               inputs()),
        monitor_(*control_, job.heartbeat) {}

  void run() {
    std::uint32_t stage = 0;  // the last that is open
    while (!ranks_.all_exited() && !ranks_.failed() && !monitor_.all_finished()) {
      std::this_thread::sleep_for(20ms);
      check_ranks();
      if (job_.progress) job_.progress(control_->rank(RankId{0}).status);
      const auto waits = [stage](const RankState& rank) { return rank.waiting_for_stage.load() > stage; };
      if (!job_.before_stage || !all_ranks(*control_, waits)) continue;
      job_.before_stage([this] { check_ranks(); });
      ++stage;
      rendezvous_ ? rendezvous_->open_stage(stage) : open_stage(*control_, stage);
    }
    // If no rank failed, all results are written, and the ranks get 5 s to exit. If a rank failed, the others
    // may wait for it forever, so they are not waited for.
    if (monitor_.all_finished()) rendezvous_.reset();  // the agents end too
    if (!ranks_.failed()) ranks_.wait_for_exit(5s);
    if (monitor_.all_finished()) return;
    throw_reported_error(job_.folder, job_.cluster.ranks);
    throw_if_memory_full(log(), shared_.path(), least_memory());
    const auto failed = ranks_.failed();
    throw_if_unconnected(RankId(failed ? failed->child : 0));
    if (const RankId first = first_rank_mpirun_reported(log(), job_.cluster.ranks); first.exists())
      throw RankLost(failure_text(*control_, {first, true, "died"}));
    const auto lost = job_.commands || job_.remote ? monitor_.check() : std::nullopt;
    if (lost) throw RankLost(failure_text(*control_, *lost));
    if (failed && failed->signal != 0)
      throw RankLost(
          fmt::format("{} was killed by signal {}", commands()[failed->child].front(), failed->signal));
    throw std::runtime_error(fmt::format("the ranks failed: {}", all_output(log())));
  }

 private:
  std::filesystem::path log() const { return job_.folder / job_.log; }

  /// Each rank of Open MPI 4 wants 4 MiB to be free when it starts, and its words about it are lost at times.
  std::uintmax_t least_memory() const {
    const bool by_mpirun = !job_.commands && !job_.remote && job_.cluster.kind == Cluster::Kind::memory;
    return by_mpirun ? (4 << 20) + (1 << 16) : 1 << 16;
  }

  std::filesystem::path control_file() const { return shared_.path() / "control"; }

  std::unique_ptr<SharedControlBlock> made_control() const {
    auto control =
        SharedControlBlock::create(control_file(), job_.cluster.ranks,
                                   job_.share_cores ? CoreShares::kRing : SharedMemoryTransport::kRing);
    set_host_names(*control, job_);
    return control;
  }

  std::vector<std::vector<std::string>> commands() const {
    if (job_.commands) return job_.commands(job_, control_file());
    if (job_.remote) return agent_commands(*job_.remote);
    return {rank_command(job_, control_file(), sessions_.path(), shares_.get())};
  }

  std::unique_ptr<Rendezvous> rendezvous() const {
    if (!job_.remote) return nullptr;
    return std::make_unique<Rendezvous>(*job_.remote, *control_, job_.folder, remote_arguments(job_));
  }

  /// The line that each agent reads: the address of the launcher, the rank and the token.
  std::vector<std::string> inputs() const {
    std::vector<std::string> texts;
    for (std::size_t rank = 0; rendezvous_ && rank < commands().size(); ++rank)
      texts.push_back(fmt::format("{} {} {}\n", rendezvous_->endpoint(), rank, job_.remote->token));
    return texts;
  }

  /// A rank whose agent never connected has not failed: its host, or from there this one, is out of reach.
  /// @param suspect  named if it is one of those
  void throw_if_unconnected(RankId suspect) const {
    const RankId rank = rendezvous_ ? rendezvous_->unconnected(suspect) : RankId{};
    if (!rank.exists()) return;
    throw RankLost(fmt::format("rank {} on {} has not connected to {}: {}", rank.value,
                               control_->rank(rank).host, rendezvous_->endpoint(),
                               last_output(log(), "is its host up, and does it reach this address?")));
  }

  void check_ranks() {
    if (job_.interrupted && job_.interrupted()) throw Interrupted("interrupted");
    if (job_.commands || job_.remote)
      throw_reported_error(job_.folder,
                           job_.cluster.ranks);  // at once: the rank may hang in what it still has to end
    if (rendezvous_) rendezvous_->check();
    const auto lost = monitor_.check();
    if (!lost) return;
    throw_if_unconnected(lost->rank);
    if (!lost->died) throw RankLost(failure_text(*control_, *lost));
    // mpirun ends all other ranks at once, so only its log tells which rank ended first. A rank that failed
    // with an exception has written an error file.
    ranks_.wait_for_exit(job_.commands || job_.remote ? 200ms : 5s);
    throw_reported_error(job_.folder, job_.cluster.ranks);
    throw_if_memory_full(log(), shared_.path(), least_memory());
    const RankId first = first_rank_mpirun_reported(log(), job_.cluster.ranks);
    throw RankLost(failure_text(*control_, {first.exists() ? first : lost->rank, true, lost->how}));
  }

  const RankJob& job_;
  WorkFolder sessions_,
      shared_;  ///< for MPI's files, which MPI leaves if it is killed, and the control block
  std::unique_ptr<SharedControlBlock> control_;
  std::unique_ptr<CoreShares> shares_;  ///< removed after the ranks have ended
  std::unique_ptr<Rendezvous> rendezvous_;
  RankProcesses ranks_;
  HeartbeatMonitor monitor_;
};

}  // namespace

void check_launch(const RankJob& job) {
  if (job.commands) return;  // whoever made them has found the program
  if (job.remote) {
    agent_commands(*job.remote);
  } else {
    rank_command(job, "", "", nullptr);
  }
}

void run_ranks(const RankJob& job) {
  check_descriptors(job.cluster.ranks);
  for (int rank = 0; rank < job.cluster.ranks; ++rank) {
    std::filesystem::remove(job.folder / fmt::format("rank-{}.error", rank));
  }
  Launch(job).run();
}

namespace {

/// Prints why a point failed, in place of the line of progress on a terminal.
void print_failure(const std::string& point, const char* why, const RankJob& job) {
  if (isatty(2) != 0) fmt::print(stderr, "\r{:100}\r", "");
  fmt::print(stderr, "{}: {} (output of the ranks: {})\n", point, why, (job.folder / job.log).string());
}

}  // namespace

std::vector<std::string> run_points_apart(const RankJob& job, const Validation& validation,
                                          const ValidationOptions& options,
                                          const std::function<void(std::size_t index)>& before_runs) {
  std::vector<std::string> failed;
  for (std::size_t i = 0; i < validation.points.size(); ++i) {
    ValidationOptions of_point = options;
    of_point.point = validation.points[i];
    RankJob own = job;
    own.log = fmt::format("point-{}.log", validation.points[i] + 1);
    own.arguments = rank_arguments(of_point);
    own.before_stage = [&](const std::function<void()>&) {
      if (before_runs) before_runs(i);
    };
    try {
      run_ranks(own);
    } catch (const InputError&) {
      throw;
    } catch (const Interrupted&) {
      throw;
    } catch (const std::exception& error) {
      failed.push_back(validation.point(i).name);
      print_failure(failed.back(), error.what(), own);
    }
  }
  return failed;
}

RankLost points_lost(const std::vector<std::string>& failed, std::size_t points) {
  return RankLost(fmt::format("{} of {} points failed: {}", failed.size(), points, fmt::join(failed, "; ")));
}

}  // namespace stepcast
