#include "validate/launch/rank_agent.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <map>
#include <memory>
#include <string_view>
#include <thread>
#include <utility>

#include "core/error.hpp"
#include "core/os/files.hpp"
#include "core/os/folders.hpp"
#include "core/os/process.hpp"
#include "core/text.hpp"
#include "kernels/timing/host_info.hpp"
#include "kernels/timing/step_timer.hpp"
#include "report/results/manifest.hpp"
#include "runtime/ranks/cluster.hpp"
#include "runtime/ranks/shared_control_block.hpp"
#include "validate/launch/rank_processes.hpp"

namespace stepcast {

bool send_frame(int socket, const Frame& frame, StoreClock::time_point end) {
  return send_all(socket, &frame.kind, 1, end) && send_text(socket, frame.name, end) &&
         send_text(socket, frame.body, end);
}

bool receive_frame(int socket, Frame& frame, StoreClock::time_point end) {
  return receive_all(socket, &frame.kind, 1, end) && receive_text(socket, frame.name, kMaxStoreKey, end) &&
         receive_text(socket, frame.body, kMaxFrame, end);
}

bool is_plain_file_name(const std::string& name) {
  std::string_view own = name;
  if (own.starts_with("store/")) own.remove_prefix(6);
  return !own.empty() && own.front() != '.' && std::ranges::all_of(own, [](unsigned char c) {
    return (c < 128 && std::isalnum(c) != 0) || c == '.' || c == '-' || c == '_';
  });
}

namespace {

using namespace std::chrono_literals;

constexpr auto kConnect = 60s;  // for the launcher to listen
constexpr auto kAnswer = 10s;   // for its answer to the token
constexpr int kPeriod = 100;    // between two states that are sent [ms]

/// A connection to the launcher that has accepted the token, closed at the end. The launcher may be busy with
/// strangers, so a connection that it closes is tried again.
/// @throws RankLost if the launcher does not accept it in time; Interrupted
class LauncherConnection {
 public:
  explicit LauncherConnection(const AgentOptions& options) {
    const BindAddress at = read_bind_address(options.launcher);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(at.port));
    inet_pton(AF_INET, at.address.c_str(), &address.sin_addr);
    const auto end = StoreClock::now() + kConnect;
    while (true) {
      socket_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
      const timeval timeout{kAnswer.count(), 0};  // Linux also limits connect by it
      setsockopt(socket_, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof timeout);
      if (connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
          is_welcome(options.token))
        return;
      close(socket_);
      SignalGuard::stop_if_interrupted();
      if (StoreClock::now() > end)
        throw RankLost(
            fmt::format("the launcher does not listen at {}, or has another token", options.launcher));
      std::this_thread::sleep_for(50ms);
    }
  }
  LauncherConnection(const LauncherConnection&) = delete;
  ~LauncherConnection() { close(socket_); }

  int socket() const { return socket_; }

  /// This machine's address towards the launcher.
  std::string own_address() const {
    sockaddr_in own{};
    socklen_t size = sizeof own;
    char text[INET_ADDRSTRLEN] = "";
    if (getsockname(socket_, reinterpret_cast<sockaddr*>(&own), &size) == 0)
      inet_ntop(AF_INET, &own.sin_addr, text, sizeof text);
    return text;
  }

 private:
  bool is_welcome(const std::string& token) const {
    const auto end = StoreClock::now() + kAnswer;
    char reply = 0;
    return send_text(socket_, token, end) && receive_all(socket_, &reply, 1, end) && reply == 'w';
  }

  int socket_ = -1;
};

/// Clock rate of the first processor [MHz]; 0 where /proc/cpuinfo does not say it.
double clock_mhz() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("cpu MHz")) return parse_number(line.substr(line.find(':') + 2)).value_or(0);
  }
  return 0;
}

std::string hello_of(const std::string& address) {
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  return fmt::format("{}\n{}\n{}\n{}\n{:.0f}\n{}\n", sha256(read_file(rank_program())), host, address,
                     sysconf(_SC_NPROCESSORS_ONLN), clock_mhz(), processor_name());
}

class RankAgent {
 public:
  explicit RankAgent(const AgentOptions& options)
      : options_(options), connection_(options), socket_(connection_.socket()) {
    std::filesystem::create_directories(folder_.path() / "store");
  }

  int run() {
    send({Frame::hello, std::to_string(options_.rank), hello_of(connection_.own_address())});
    while (connected_ && !dismissed_ && !SignalGuard::interrupted()) {
      pollfd one{socket_, POLLIN, 0};
      if (poll(&one, 1, kPeriod) > 0) answer();
      if (ranks_) report();
    }
    ranks_.reset();  // ends the rank if it still runs
    if (!finished_ && !dismissed_)
      fmt::print(stderr, "rank {}: the launcher at {} closed the connection\n", options_.rank,
                 options_.launcher);
    return finished_ ? 0 : 1;
  }

 private:
  static StoreClock::time_point in_time() { return StoreClock::now() + kFrameTime; }

  void send(const Frame& frame) { connected_ = connected_ && send_frame(socket_, frame, in_time()); }

  void answer() {
    Frame frame;
    if (!receive_frame(socket_, frame, in_time())) {
      connected_ = false;
    } else if (frame.kind == Frame::quit) {
      dismissed_ = true;
    } else if (frame.kind == Frame::clock) {
      send({Frame::clock, "", fmt::format("{:.9f}", now().wall)});
    } else if (frame.kind == Frame::file && is_plain_file_name(frame.name)) {
      write_atomically(folder_.path() / frame.name, frame.body);
      known_[frame.name] = stamp_of(frame.name);
    } else if (frame.kind == Frame::job && !ranks_) {
      start(frame.body);
    } else if (frame.kind == Frame::stage && control_) {
      open_stage(*control_, std::atoi(frame.name.c_str()));
    }
  }

  /// @param text  arguments of stepcast-rank, each followed by a zero byte; the first is the number of ranks
  void start(const std::string& text) {
    std::vector<std::string> words{rank_program().string()};
    for (std::size_t at = 0; at < text.size(); at = text.find('\0', at) + 1)
      words.push_back(text.substr(at, text.find('\0', at) - at));
    const int ranks = std::atoi(words.at(1).c_str());
    if (ranks <= options_.rank || ranks > SharedControlBlock::kMaxRanks) return;
    const auto control = folder_.path() / ".control";
    control_ = SharedControlBlock::create(control, ranks);
    words[1] = "--ranks=" + words[1];
    const auto scenario = std::ranges::find(words, "--scenario");
    if (scenario + 1 < words.end()) scenario[1] = (folder_.path() / scenario[1]).string();
    words.insert(words.begin() + 1, {"--folder", folder_.path().string(), "--control", control.string(),
                                     "--rank", std::to_string(options_.rank)});
    const std::vector<std::vector<std::string>> commands{words};
    ranks_ = std::make_unique<RankProcesses>(*control_, commands, folder_.path() / "ranks.log",
                                             RankNetwork::of_the_machine);
  }

  /// Sends the files that the rank has written, and then the state that it had before.
  void report() {
    const bool exited = ranks_->all_exited();
    const RankState& state = control_->rank(RankId(options_.rank));
    finished_ = state.finished.load() != 0;
    const bool died = exited && !finished_;
    const int process = died ? kDiedElsewhere : is_stopped(state.process.load()) ? kStoppedElsewhere : 0;
    const std::string text =
        fmt::format("{} {} {} {} {} {} {} {}", state.heartbeat.load(), state.collectives_heartbeat.load(),
                    state.messages_heartbeat.load(), state.input_heartbeat.load(),
                    state.waiting_for_stage.load(), finished_ ? 1 : 0, process, state.status);
    send_files("");
    send_files("store/");
    send({Frame::state, "", text});
  }

  using Stamp = std::pair<std::uintmax_t, std::filesystem::file_time_type>;

  Stamp stamp_of(const std::string& name) const {
    std::error_code none;
    const auto file = folder_.path() / name;
    return {std::filesystem::file_size(file, none), std::filesystem::last_write_time(file, none)};
  }

  void send_files(const std::string& within) {
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path() / within)) {
      const std::string name = within + entry.path().filename().string();
      if (!entry.is_regular_file() || !is_plain_file_name(name)) continue;
      const Stamp stamp = stamp_of(name);
      const auto known = known_.find(name);
      if (known != known_.end() && known->second == stamp) continue;
      send({Frame::file, name, read_file(folder_.path() / name)});
      known_[name] = stamp;
    }
  }

  const AgentOptions& options_;
  WorkFolder folder_;
  LauncherConnection connection_;
  int socket_;
  bool connected_ = true, dismissed_ = false, finished_ = false;
  std::map<std::string, Stamp> known_;  ///< files that the launcher has
  std::unique_ptr<SharedControlBlock> control_;
  std::unique_ptr<RankProcesses> ranks_;
};

/// The value of the first variable that holds a whole number; -1: none does.
int first_number(const std::vector<const char*>& variables) {
  for (const char* name : variables) {
    const char* text = std::getenv(name);
    const auto number = text == nullptr ? std::nullopt : parse_integer(text);
    if (number && *number >= 0 && *number < 1 << 20) return *number;
  }
  return -1;
}

}  // namespace

AgentOptions agent_options_of_input() {
  AgentOptions options;
  if (!(std::cin >> options.launcher >> options.rank >> options.token) || options.rank < 0)
    throw InputError("agent: expected ADDRESS:PORT RANK TOKEN at standard input");
  return options;
}

int run_rank_agent(const AgentOptions& options) {
  const SignalGuard signals;  // so that the folder is removed
  return RankAgent(options).run();
}

std::optional<JobTask> job_task() {
  const JobTask task{first_number({"OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"}),
                     first_number({"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS"})};
  if (task.tasks < 2 || task.rank < 0 || task.rank >= task.tasks) return {};
  return task;
}

std::filesystem::path rank_program() {
  const auto self = std::filesystem::read_symlink("/proc/self/exe");
  const auto program = self.parent_path() / "stepcast-rank";
  if (access(program.c_str(), X_OK) != 0)
    throw InputError(fmt::format("{}: not found; build it: cmake --build {} --target stepcast-rank",
                                 program.string(), program.parent_path().string()));
  return program;
}

}  // namespace stepcast
