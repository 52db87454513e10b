#include "validate/launch.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <optional>
#include <system_error>
#include <thread>

#include "core/error.hpp"
#include "report/atomic_file.hpp"
#include "validate/control.hpp"
#include "validate/rank_command.hpp"
#include "validate/rank_processes.hpp"
#include "validate/watch.hpp"

namespace stepcast {
namespace {

using namespace std::chrono_literals;

/// A folder of shared memory for this launch: the file that all ranks map, and what MPI keeps there, which it
/// leaves behind when ranks are killed. Goes with all that is in it.
class SharedFolder {
 public:
  SharedFolder() : path_(fmt::format("/dev/shm/stepcast-{}", getpid())) {
    std::filesystem::create_directories(path_);
  }
  SharedFolder(const SharedFolder&) = delete;
  ~SharedFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  std::filesystem::path control() const { return path_ / "control"; }

 private:
  std::filesystem::path path_;
};

/// Throws what a rank complained of, if one did: the first word says whether the user is meant.
void throw_complaint(const RankJob& job) {
  for (int rank = 0; rank < job.cluster.ranks; ++rank) {
    std::ifstream file(job.folder / fmt::format("rank-{}.error", rank));
    std::string kind, line;
    if (!(file >> kind) || !std::getline(file >> std::ws, line)) continue;
    if (kind == "input") throw InputError(line);
    if (kind == "lost") throw RankLost(line);
    throw std::runtime_error(fmt::format("rank {}: {}", rank, line));
  }
}

/// The last words of the ranks, or of mpirun.
std::string last_words(const RankJob& job) {
  std::string last = "they said nothing", line;
  std::ifstream log(job.folder / "ranks.log");
  while (std::getline(log, line)) {
    if (line.find_first_not_of(" -\t") != std::string::npos) last = line;
  }
  return fmt::format("the ranks could not be run: {} ({})", last, (job.folder / "ranks.log").string());
}

/// The rank that mpirun saw end before it ended the others; -1: it names none.
int first_ended(const RankJob& job) {
  const std::string before = "process rank ";
  std::string line;
  std::ifstream log(job.folder / "ranks.log");
  while (std::getline(log, line)) {
    const auto at = line.find(before);
    if (at == std::string::npos) continue;
    const int rank = std::atoi(line.c_str() + at + before.size());
    if (rank >= 0 && rank < job.cluster.ranks) return rank;
  }
  return -1;
}

/// Of all ranks: how far they are.
bool all(const Control& control, bool (*holds)(const RankState&)) {
  for (int rank = 0; rank < control.ranks(); ++rank) {
    if (!holds(control.rank(rank))) return false;
  }
  return true;
}

void name_hosts(const Control& control, const Cluster& cluster) {
  for (int rank = 0; rank < cluster.ranks; ++rank) {
    const std::string host = host_of(cluster, rank);
    host.copy(control.rank(rank).host, sizeof RankState::host - 1);
  }
}

/// One launch of the ranks, from their start to their end.
class Launch {
 public:
  explicit Launch(const RankJob& job)
      : job_(job),
        control_(Control::create(shared_.control(), job.cluster.ranks)),
        ranks_(*control_, commands(), job.folder / "ranks.log"),
        watch_(*control_, job.heartbeat) {
    name_hosts(*control_, job.cluster);
  }

  void run() {
    bool predicted = !job_.before_stage;
    while (!ranks_.ended() && ranks_.well() && !watch_.all_finished()) {
      std::this_thread::sleep_for(20ms);
      look();
      if (job_.progress) job_.progress(control_->rank(0).doing);
      if (predicted || !all(*control_, [](const RankState& rank) { return rank.waiting.load() > 0; }))
        continue;
      job_.before_stage([this] { look(); });
      predicted = true;
      open_gate(*control_, 1);
    }
    // What they measured is written: how they end matters no more. Where one failed, others may wait for it.
    if (ranks_.well()) ranks_.give_time(5s);
    if (watch_.all_finished()) return;
    throw_complaint(job_);
    if (const int first = first_ended(job_); first >= 0)
      throw RankLost(named(*control_, {first, true, "died"}));
    const auto lost = job_.commands ? watch_.look() : std::nullopt;
    if (lost) throw RankLost(named(*control_, *lost));
    throw std::runtime_error(last_words(job_));
  }

 private:
  std::vector<std::vector<std::string>> commands() const {
    if (job_.commands) return job_.commands(shared_.control());
    return {rank_command(job_, shared_.control())};
  }

  void look() {
    if (job_.interrupted && job_.interrupted()) throw Interrupted("interrupted");
    const auto lost = watch_.look();
    if (!lost) return;
    if (!lost->died) throw RankLost(named(*control_, *lost));
    // mpirun ends all others at once: it alone knows who went first. A rank that throws says why.
    ranks_.give_time(job_.commands ? 200ms : 5s);
    throw_complaint(job_);
    const int first = first_ended(job_);
    throw RankLost(named(*control_, {first < 0 ? lost->rank : first, true, lost->how}));
  }

  const RankJob& job_;
  SharedFolder shared_;
  std::unique_ptr<Control> control_;
  RankProcesses ranks_;
  Watch watch_;
};

}  // namespace

void run_ranks(const RankJob& job) {
  for (int rank = 0; rank < job.cluster.ranks; ++rank) {
    std::filesystem::remove(job.folder / fmt::format("rank-{}.error", rank));
  }
  Launch(job).run();
}

}  // namespace stepcast
