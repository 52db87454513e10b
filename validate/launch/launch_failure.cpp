#include "validate/launch/launch_failure.hpp"

#include <fmt/format.h>
#include <sys/resource.h>

#include <cstdlib>
#include <fstream>

#include "core/error.hpp"
#include "core/os/files.hpp"

namespace stepcast {

void throw_reported_error(const std::filesystem::path& folder, int ranks) {
  for (int rank = 0; rank < ranks; ++rank) {
    std::ifstream file(folder / fmt::format("rank-{}.error", rank));
    std::string kind, line;
    if (!(file >> kind) || !std::getline(file >> std::ws, line)) continue;
    if (kind == "input") throw InputError(line);
    if (kind == "limit") throw LimitError(line);
    if (kind == "lost") throw RankLost(line);
    throw std::runtime_error(fmt::format("rank {}: {}", rank, line));
  }
}

void throw_if_memory_full(const std::filesystem::path& log, const std::filesystem::path& shared,
                          std::uintmax_t least) {
  std::error_code error;
  bool full = std::filesystem::space(shared, error).available < least && !error;
  std::ifstream file(log);
  for (std::string line; !full && std::getline(file, line);)
    full = line.find("not enough space for " + shared.string()) != std::string::npos;  // Open MPI's words
  if (full)
    throw DiskFull(fmt::format("{}: no space left for the memory that the ranks share (see {})",
                               shared.parent_path().string(), log.string()));
}

std::string last_output(const std::filesystem::path& log, const std::string& otherwise) {
  std::string last, line;
  std::ifstream file(log);
  while (std::getline(file, line)) {
    if (line.find_first_not_of(" -\t") != std::string::npos) last = line;
  }
  return last.empty() ? otherwise : fmt::format("{} (see {})", last, log.string());
}

std::string all_output(const std::filesystem::path& log) {
  constexpr int kMostLines = 60;
  std::string all, line;
  std::ifstream file(log);
  for (int lines = 0; lines < kMostLines && std::getline(file, line);) {
    if (line.find_first_not_of(" -\t") == std::string::npos) continue;  // mpirun frames what it says
    all += "\n  " + line;
    ++lines;
  }
  return all.empty() ? "no output" : fmt::format("see {}{}", log.string(), all);
}

RankId first_rank_mpirun_reported(const std::filesystem::path& log, int ranks) {
  const std::string before = "process rank ";
  std::string line;
  std::ifstream file(log);
  while (std::getline(file, line)) {
    const auto at = line.find(before);
    if (at == std::string::npos) continue;
    const int rank = std::atoi(line.c_str() + at + before.size());
    if (rank >= 0 && rank < ranks) return RankId(rank);
  }
  return {};
}

void check_descriptors(int ranks) {
  constexpr rlim_t kBase = 48, kEach = 8;  // of mpirun; with fewer than 40 for two ranks it waits for ever
  rlimit files{};
  const rlim_t needed = kBase + kEach * ranks;
  if (getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur >= needed) return;
  files.rlim_cur = std::min(needed, files.rlim_max);
  if (setrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur == needed) return;
  throw LimitError(
      fmt::format("{} ranks: expected at least {} file descriptors, got {}; raise the limit (ulimit -n)",
                  ranks, needed, files.rlim_max));
}

}  // namespace stepcast
