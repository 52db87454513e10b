#include "validate/launch/real_run_options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "core/error.hpp"
#include "runtime/rendezvous/store.hpp"
#include "scenarios/reader/library.hpp"

namespace stepcast {

const std::vector<std::string> kPrecisions{"f32", "tf32", "f16", "bf16"};

GpuPlace gpu_place(const std::string& path, int first, int gpus, int rank, int ranks) {
  const int usable = gpus - first;
  if (usable < 1)
    throw InputError(fmt::format("--device cuda:{}: CUDA sees {} GPU{} here", first,
                                 gpus == 0 ? "no" : std::to_string(gpus), gpus == 1 ? "" : "s"));
  const bool own = ranks <= usable;
  if (path == "nccl" && !own) {
    throw InputError(
        fmt::format("--path nccl: NCCL refuses two ranks on one GPU, and there are {} ranks for {} GPU{}; "
                    "--path host lets them share",
                    ranks, usable, usable == 1 ? "" : "s"));
  }
  return {first + rank % usable, own && path != "host"};
}

std::vector<std::vector<std::string>> gpu_rank_commands(const std::filesystem::path& program,
                                                        const GpuRanks& gpus, const RankJob& job,
                                                        const std::filesystem::path& control) {
  const std::filesystem::path store = job.folder / "store";
  std::filesystem::remove_all(store);  // values of an earlier run
  std::vector<std::vector<std::string>> commands;
  for (int rank = 0; rank < job.cluster.ranks; ++rank) {
    commands.push_back({program.string(),  "rank",
                        "--rank",          std::to_string(rank),
                        "--ranks",         std::to_string(job.cluster.ranks),
                        "--store",         store.string(),
                        "--folder",        job.folder.string(),
                        "--control",       control.string(),
                        "--stall-timeout", fmt::format("{:g}", job.heartbeat / 2),
                        "--device",        gpus.options.device,
                        "--precision",     gpus.options.precision,
                        "--layout",        gpus.options.layout,
                        "--workspace",     std::to_string(gpus.options.workspace_mib),
                        "--path",          gpus.path});
    if (gpus.options.no_fusion) commands.back().push_back("--no-fusion");
    if (gpus.options.graphs) commands.back().push_back("--graphs");
    if (!gpus.device_file.empty())
      commands.back().insert(commands.back().end(), {"--device-file", gpus.device_file});
    commands.back().insert(commands.back().end(), job.arguments.begin(), job.arguments.end());
  }
  return commands;
}

void add_gpu_options(Command command, GpuOptionsText& options, const std::string& device_help) {
  command.add_option("--device", options.device, device_help).show_default();
  command
      .add_option("--precision", options.precision, "On GPUs: precision of matrix products and activations.")
      .one_of(kPrecisions)
      .show_default();
  command.add_option("--layout", options.layout, "On GPUs: memory layout of images.")
      .one_of({"nchw", "nhwc"})
      .show_default();
  command
      .add_option("--workspace", options.workspace_mib, "On GPUs: workspace limit of cuDNN and cuBLAS [MiB].")
      .range(32, 1 << 16)
      .show_default();
  command.add_flag(
      "--no-fusion", options.no_fusion,
      "On GPUs: compute a ReLU after batch norm, and the update of each layer, in kernels of their "
      "own, as PyTorch does.");
  command.add_flag(
      "--graphs", options.graphs,
      "On GPUs: replay passes that follow one another as one CUDA graph, so that small batches do "
      "not wait for the host. Not for layers with dropout and for parts of layers.");
}

void add_gpu_paths(Command command, GpuRanks& gpus) {
  command
      .add_option(
          "--path", gpus.path,
          "On GPUs: what carries collectives and messages: nccl, host, or auto (nccl if each rank has "
          "a GPU of its own).")
      .one_of({"auto", "nccl", "host"})
      .show_default();
  command.add_option("--device-file", gpus.device_file,
                     "On GPUs: file of the GPU in models/devices. Default: found by the GPU's name.");
}

Option add_real_run_options(Command command, RealRunOptions& options, const std::string& device_help) {
  command.add_option("scenario", options.validation.scenario, "Scenario file, or a name in scenarios/.")
      .required()
      .transform(scenario_file)
      .type_name("SCENARIO.yaml");
  const Option ranks =
      command.add_option("--ranks", options.ranks, "Number of ranks to start, servers included.")
          .range(2, 64)
          .show_default();
  command.add_option("--repeats", options.validation.repeats, "Number of runs of each point that count.")
      .range(1, 1000)
      .show_default();
  command.add_option("-o,--output", options.output, "Folder for the results. Default: results/SCENARIO-NAME.")
      .type_name("DIR");
  command.add_option("--set", options.validation.settings, "Replace a value of the scenario.")
      .type_name("KEY=VALUE")
      .one_value();
  command
      .add_option("--heartbeat", options.heartbeat,
                  "Seconds without a heartbeat after which a rank counts as hung.")
      .range(1.0, 3600.0)
      .show_default();
  add_gpu_options(command, options.gpus.options, device_help);
  add_gpu_paths(command, options.gpus);
  return ranks;
}

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
                  "Start the ranks on several machines by ssh. Each line of the file is HOST [slots=N] "
                  "[address=IPV4], as in Open MPI's hostfile.")
      .type_name("FILE");
  command
      .add_option("--rsh", options.rsh,
                  "With --hosts: program in place of ssh, called as `RSH HOST PROGRAM agent`.")
      .type_name("PROGRAM")
      .show_default();
  command
      .add_option(
          "--bind", options.bind,
          "Address of this machine to which the ranks of other machines connect. With --hosts, the default "
          "is "
          "the address that reaches the first host. Inside mpirun or srun, ADDRESS:PORT of the first process "
          "is required if there are several processes.")
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
