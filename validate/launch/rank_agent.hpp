#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace stepcast {

/// Where the agent of a rank finds the launcher.
struct AgentOptions {
  std::string launcher;  ///< ADDRESS:PORT
  int rank = 0;
  std::string token;
};

/// Reads "ADDRESS:PORT RANK TOKEN" from standard input, where the launcher writes it: command lines can be
/// read by every user of a machine. @throws InputError
AgentOptions agent_options_of_input();

/// Runs one rank for a launcher on another machine, like torchrun's agent: connects to it, starts
/// stepcast-rank in a temporary folder, sends its heartbeats and the files that it writes, and ends it when
/// the launcher says so or is gone.
/// @return exit code: 0 if the rank reached its end
int run_rank_agent(const AgentOptions& options);

/// A process's place among those that mpirun or srun started.
struct JobTask {
  int rank = 0, tasks = 1;
};

/// From the variables of Open MPI, MPICH (PMI) or Slurm; empty: started by none of them, or alone.
std::optional<JobTask> job_task();

/// stepcast-rank, which lies beside this program. @throws InputError if it was not built
std::filesystem::path rank_program();

}  // namespace stepcast
