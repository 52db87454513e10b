#pragma once

#include <optional>
#include <string>

#include "core/cli/command_line.hpp"
#include "validate/launch/rank_agent.hpp"
#include "validate/launch/real_run_options.hpp"
#include "validate/launch/rendezvous.hpp"

namespace stepcast {

/// Options of `stepcast validate` for ranks on several machines.
struct RemoteOptions {
  std::string hosts, rsh = "ssh", bind, transport = "own";
  bool ranks_given = false;

  bool given() const { return !hosts.empty() || !bind.empty(); }
};

/// Adds --hosts, --rsh and --bind.
void add_remote_options(Command command, RemoteOptions& options);

/// In a job of mpirun or srun, the first process launches the ranks, and each other process is the agent of
/// its rank. Empty: this process launches. @throws InputError
std::optional<AgentOptions> agent_of_job(const RemoteOptions& options);

/// The ranks of --hosts, or of a job of mpirun or srun; sets `run.ranks`. Empty: the ranks run on this
/// machine. @throws InputError
std::optional<RemoteRanks> remote_ranks(const RemoteOptions& options, RealRunOptions& run);

}  // namespace stepcast
