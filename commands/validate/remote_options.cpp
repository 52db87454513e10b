#include "commands/validate/remote_options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "core/error.hpp"
#include "runtime/rendezvous/tcp_store.hpp"

namespace stepcast {
namespace {

/// The token that all processes of a job share. @throws InputError if there is none
std::string token_of_job() {
  const char* token = std::getenv(kStoreToken);
  if (token != nullptr && std::strlen(token) >= 8 && std::strlen(token) <= kMaxStoreKey &&
      std::string_view(token).find_first_of(" \t\n") == std::string_view::npos)
    return token;
  throw InputError(
      fmt::format("--bind inside mpirun or srun: expected a token of 8 to {} characters in {}, the same for "
                  "all processes "
                  "(mpirun: -x {})",
                  kMaxStoreKey, kStoreToken, kStoreToken));
}

/// This process's place in its job. @throws InputError if there is no job, or `bind` has no port
JobTask task_of_job(const std::string& bind) {
  const auto task = job_task();
  if (!task || read_bind_address(bind).port == 0)
    throw InputError(
        "--bind: expected ADDRESS:PORT inside mpirun or srun with several processes; otherwise give --hosts");
  return *task;
}

/// The first `ranks` slots of the hosts; 0: all.
std::vector<Host> used_hosts(const std::string& file, int ranks) {
  std::vector<Host> used;
  int slots = 0;
  for (const Host& host : read_hosts(file)) {
    const int left = ranks > 0 ? std::min(ranks - slots, host.slots) : host.slots;
    if (left < 1) break;
    used.push_back(host);
    used.back().slots = left;
    slots += left;
  }
  if (slots < std::max(2, ranks))
    throw InputError(
        fmt::format("{}: expected at least {} slots in all, got {}", file, std::max(2, ranks), slots));
  return used;
}

/// Ranks that ssh starts. @return their number in `ranks`
void add_hosts(const RemoteOptions& options, RemoteRanks& remote, int& ranks) {
  if (options.transport == "mpi")
    throw InputError(
        "--transport mpi: ssh starts ranks without MPI; start stepcast validate itself by mpirun or srun");
  remote.hosts = used_hosts(options.hosts, options.ranks_given ? ranks : 0);
  ranks = 0;
  for (const Host& host : remote.hosts) ranks += host.slots;
  remote.bind =
      read_bind_address(options.bind.empty() ? address_towards(remote.hosts.front().name) : options.bind);
  remote.token = random_token();
}

/// The ranks of a job that mpirun or srun has started; this process is the first of it.
void add_job(const RemoteOptions& options, RemoteRanks& remote, int& ranks) {
  ranks = task_of_job(options.bind).tasks;
  remote.bind = read_bind_address(options.bind);
  remote.token = token_of_job();
}

}  // namespace

std::optional<AgentOptions> agent_of_job(const RemoteOptions& options) {
  if (options.bind.empty() || !options.hosts.empty()) return {};
  const int rank = task_of_job(options.bind).rank;
  if (rank == 0) return {};
  return AgentOptions{options.bind, rank, token_of_job()};
}

void add_remote_options(Command command, RemoteOptions& options) {
  command
      .add_option("--hosts", options.hosts,
                  "Run the ranks on several machines, which ssh starts: a file with one HOST [slots=N] "
                  "[address=IPV4] a line, as Open MPI has them.")
      .type_name("FILE");
  command
      .add_option("--rsh", options.rsh, "With --hosts: program that is called as `RSH HOST PROGRAM agent`.")
      .type_name("PROGRAM")
      .show_default();
  command
      .add_option(
          "--bind", options.bind,
          "Address of this machine at which the ranks of other machines meet. With --hosts, default: the "
          "one that reaches the first host. Inside mpirun or srun: ADDRESS:PORT of the first process.")
      .type_name("ADDRESS[:PORT]");
}

std::optional<RemoteRanks> remote_ranks(const RemoteOptions& options, RealRunOptions& run) {
  if (!options.given()) return {};
  RemoteRanks remote;
  remote.rsh = options.rsh;
  remote.scenario = std::filesystem::absolute(run.validation.scenario);
  remote.computes = !run.validation.sleep;
  options.hosts.empty() ? add_job(options, remote, run.ranks) : add_hosts(options, remote, run.ranks);
  return remote;
}

}  // namespace stepcast
