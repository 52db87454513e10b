#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/cli/command_line.hpp"
#include "runtime/scenario_points/validation_plan.hpp"
#include "validate/launch/launcher.hpp"
#include "validate/launch/rank_agent.hpp"
#include "validate/launch/rendezvous.hpp"

namespace stepcast {

extern const std::vector<std::string> kPrecisions;

/// Command-line options that choose a GPU and how it computes.
struct GpuOptionsText {
  std::string device = "cuda:0", precision = "f32", layout = "nchw";
  std::int64_t workspace_mib = 1024;
  bool no_fusion = false;
  bool graphs = false;
};

/// The use of GPUs by the ranks of a real run.
struct GpuRanks {
  GpuOptionsText options = {};  ///< device: of rank 0; the other ranks count up from it
  /// Carrier of messages and collectives: nccl, host, or auto (nccl if each rank has a GPU of its own).
  std::string path = "auto";
  std::string device_file = {};  ///< name in models/devices; empty: by the GPU's name
};

/// The GPU of a rank, and whether NCCL connects the ranks.
struct GpuPlace {
  int device = 0;
  bool nccl = false;
};

/// @param first  GPU of rank 0; ranks beyond the last GPU start again at this one
/// @param gpus   number of GPUs that CUDA sees
/// @throws InputError if there is no GPU, or if two ranks of one GPU would use NCCL, which refuses that
GpuPlace gpu_place(const std::string& path, int first, int gpus, int rank, int ranks);

/// Command lines of `stepcast-gpu rank`, one for each rank. The ranks use a file store in the job's folder. A
/// rank waits in NCCL half as long as the heartbeat timeout, so that a missing rank is named before those
/// that wait for it.
std::vector<std::vector<std::string>> gpu_rank_commands(const std::filesystem::path& program,
                                                        const GpuRanks& gpus, const RankJob& job,
                                                        const std::filesystem::path& control);

/// Options of a real run on any device, which `stepcast validate` and `stepcast-gpu run` share.
struct RealRunOptions {
  ValidationOptions validation;
  int ranks = 2;
  double heartbeat = kHeartbeatTimeout;  ///< [s]
  std::string output = {};
  GpuRanks gpus;
};

/// @param device_help  help text of --device
/// @return the option --ranks
Option add_real_run_options(Command command, RealRunOptions& options, const std::string& device_help);

/// Adds --device, --precision, --layout and --workspace.
void add_gpu_options(Command command, GpuOptionsText& options, const std::string& device_help);
/// Adds --path and --device-file.
void add_gpu_paths(Command command, GpuRanks& gpus);

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
