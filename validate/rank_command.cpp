#include "validate/rank_command.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <sstream>

#include "core/error.hpp"
#include "scenarios/data_files.hpp"

namespace stepcast {
namespace {

std::filesystem::path rank_program() {
  const auto self = std::filesystem::read_symlink("/proc/self/exe");
  const auto beside = self.parent_path() / "stepcast-rank";
  if (access(beside.c_str(), X_OK) != 0) {
    throw InputError(fmt::format("{}: not there; build stepcast with MPI (libopenmpi-dev)", beside.string()));
  }
  return beside;
}

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
        std::string("--mca"), std::string("btl_tcp_if_include"), std::string("10.87.0.0/24")}) {
    command.push_back(word);
  }
}

}  // namespace

std::filesystem::path find_program(const std::string& name) {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "" : path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    const auto file = std::filesystem::path(folder) / name;
    if (access(file.c_str(), X_OK) == 0) return file;
  }
  return {};
}

std::vector<std::string> rank_arguments(const ValidationOptions& options) {
  std::vector<std::string> words{"--scenario", std::filesystem::absolute(options.scenario).string(),
                                 "--repeats", std::to_string(options.repeats)};
  for (const std::string& setting : options.settings) words.insert(words.end(), {"--set", setting});
  if (options.sleep) words.push_back("--sleep");
  if (options.accept_disturbed) words.push_back("--accept-disturbed");
  return words;
}

std::vector<std::string> rank_command(const RankJob& job, const std::filesystem::path& control) {
  const auto mpirun = find_program("mpirun");
  if (mpirun.empty()) throw InputError("mpirun not found: it starts the ranks (apt install openmpi-bin)");
  const std::string ranks = std::to_string(job.cluster.ranks);
  std::vector<std::string> command{mpirun.string(), "-n", ranks, "--oversubscribe", "--bind-to", "none"};
  if (job.cluster.kind == Cluster::Kind::netcluster) add_hosts(job.cluster, command);
  for (const auto& word :
       {std::string("--mca"), std::string("btl_vader_backing_directory"), control.parent_path().string(),
        rank_program().string(), std::string("--folder"), job.folder.string(), std::string("--control"),
        control.string(), std::string("--cluster"), job.cluster.name}) {
    command.push_back(word);
  }
  command.insert(command.end(), job.arguments.begin(), job.arguments.end());
  return command;
}

}  // namespace stepcast
