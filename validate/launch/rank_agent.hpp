#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>

#include "runtime/rendezvous/store.hpp"

namespace stepcast {

/// One message between the launcher and the agent of a rank.
struct Frame {
  enum Kind : char {
    hello = 'h',  ///< from an agent, once; name: its rank; body: facts about its host, one per line
    clock = 'c',  ///< asks for, and answers with, CLOCK_MONOTONIC [s]
    job = 'j',    ///< to an agent: arguments of stepcast-rank, each followed by a zero byte
    file = 'f',   ///< a file of the rank's folder, whole
    state = 's',  ///< from an agent: RankState as text
    stage = 'o',  ///< to an agent: open stage 1
    quit = 'q'    ///< to an agent: end the rank
  };
  char kind = 0;
  std::string name = {}, body = {};
};

constexpr std::chrono::seconds kFrameTime(60);           ///< for one frame
constexpr std::size_t kMaxFrame = std::size_t{1} << 28;  ///< longest body [bytes]

bool send_frame(int socket, const Frame& frame, StoreClock::time_point end);
/// @return false if the peer closed the socket, sent something else, or took longer than until `end`
bool receive_frame(int socket, Frame& frame, StoreClock::time_point end);

/// True for names that stay in their folder: letters, digits, '.', '_' and '-', not beginning with '.', and
/// at most one folder, "store/", before them.
bool is_plain_file_name(const std::string& name);

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

/// stepcast-rank, which is in the folder of this program. @throws InputError if it was not built
std::filesystem::path rank_program();

}  // namespace stepcast
