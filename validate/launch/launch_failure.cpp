#include "validate/launch/launch_failure.hpp"

#include <fmt/format.h>
#include <sys/resource.h>

#include <cstdlib>
#include <fstream>

#include "core/error.hpp"
#include "core/os/files.hpp"

namespace stepcast {

void throw_reported_error(const RankJob& job) {
  for (int rank = 0; rank < job.cluster.ranks; ++rank) {
    std::ifstream file(job.folder / fmt::format("rank-{}.error", rank));
    std::string kind, line;
    if (!(file >> kind) || !std::getline(file >> std::ws, line)) continue;
    if (kind == "input") throw InputError(line);
    if (kind == "limit") throw LimitError(line);
    if (kind == "lost") throw RankLost(line);
    throw std::runtime_error(fmt::format("rank {}: {}", rank, line));
  }
}

void throw_if_memory_full(const RankJob& job, const std::filesystem::path& shared) {
  // Each rank of Open MPI 4 wants 4 MiB to be free when it starts; its words about it are lost at times.
  const bool by_mpirun = !job.commands && !job.remote && job.cluster.kind == Cluster::Kind::memory;
  const std::uintmax_t few = by_mpirun ? (4 << 20) + (1 << 16) : 1 << 16;
  std::error_code error;
  bool full = std::filesystem::space(shared, error).available < few && !error;
  std::ifstream log(job.folder / job.log);
  for (std::string line; !full && std::getline(log, line);)
    full = line.find("not enough space for " + shared.string()) != std::string::npos;  // Open MPI's words
  if (full)
    throw DiskFull(fmt::format("{}: no space left for the memory that {} ranks share (see {})",
                               shared.parent_path().string(), job.cluster.ranks,
                               (job.folder / job.log).string()));
}

std::string last_output(const RankJob& job, const std::string& otherwise) {
  std::string last, line;
  std::ifstream log(job.folder / job.log);
  while (std::getline(log, line)) {
    if (line.find_first_not_of(" -\t") != std::string::npos) last = line;
  }
  return last.empty() ? otherwise : fmt::format("{} (see {})", last, (job.folder / job.log).string());
}

RankId first_rank_mpirun_reported(const RankJob& job) {
  const std::string before = "process rank ";
  std::string line;
  std::ifstream log(job.folder / job.log);
  while (std::getline(log, line)) {
    const auto at = line.find(before);
    if (at == std::string::npos) continue;
    const int rank = std::atoi(line.c_str() + at + before.size());
    if (rank >= 0 && rank < job.cluster.ranks) return RankId(rank);
  }
  return {};
}

void check_descriptors(int ranks) {
  constexpr rlim_t kBase = 48, kEach = 8;  // of mpirun; with fewer than 40 for two ranks it waits for ever
  rlimit files{};
  const rlim_t needed = kBase + kEach * static_cast<rlim_t>(ranks);
  if (getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur >= needed) return;
  files.rlim_cur = std::min(needed, files.rlim_max);
  if (setrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur == needed) return;
  throw LimitError(
      fmt::format("{} ranks: expected at least {} file descriptors, got {}; raise the limit (ulimit -n)",
                  ranks, needed, files.rlim_max));
}

}  // namespace stepcast
