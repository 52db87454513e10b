#include "validate/launch/rendezvous.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netdb.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <map>
#include <sstream>
#include <system_error>

#include "core/error.hpp"
#include "core/os/files.hpp"
#include "core/text.hpp"
#include "kernels/timing/step_timer.hpp"
#include "report/results/manifest.hpp"
#include "report/results/results.hpp"
#include "runtime/rendezvous/store.hpp"
#include "validate/launch/pending_connections.hpp"
#include "validate/launch/rank_agent.hpp"
#include "validate/launch/rank_processes.hpp"

namespace stepcast {
namespace {

using namespace std::chrono_literals;

constexpr int kClockPings = 20;
constexpr int kMostNamed = 100;  // connections without the token in the log

StoreClock::time_point in_time() {
  return StoreClock::now() + kFrameTime;
}

sockaddr_in socket_address(const std::string& address, int port) {
  sockaddr_in result{};
  result.sin_family = AF_INET;
  result.sin_port = htons(static_cast<std::uint16_t>(port));
  inet_pton(AF_INET, address.c_str(), &result.sin_addr);
  return result;
}

std::string text_of(const sockaddr_in& address) {
  char text[INET_ADDRSTRLEN] = "";
  inet_ntop(AF_INET, &address.sin_addr, text, sizeof text);
  return text;
}

/// @return the listening socket, and its port in `port`
int listening_socket(const BindAddress& bind, int& port) {
  const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  sockaddr_in address = socket_address(bind.address, bind.port);
  socklen_t size = sizeof address;
  const int yes = 1;
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (::bind(listener, reinterpret_cast<const sockaddr*>(&address), size) != 0 ||
      listen(listener, SOMAXCONN) != 0 ||
      getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    const std::string reason = std::strerror(errno);
    close(listener);
    throw InputError(fmt::format("--bind {}: cannot listen there: {}", bind.address, reason));
  }
  port = ntohs(address.sin_port);
  return listener;
}

/// Reads RankState as an agent sends it. @return false for other text
bool read_state(const std::string& text, RankState& state) {
  std::istringstream words(text);
  std::uint64_t beats[4] = {};
  std::uint32_t stage = 0;
  int finished = 0, process = 0;
  std::string status;
  if (!(words >> beats[0] >> beats[1] >> beats[2] >> beats[3] >> stage >> finished >> process)) return false;
  std::getline(words >> std::ws, status);
  status.resize(std::min(status.size(), sizeof state.status - 1));
  std::memcpy(state.status, status.c_str(), status.size() + 1);
  state.heartbeat.store(beats[0]);
  state.collectives_heartbeat.store(beats[1]);
  state.messages_heartbeat.store(beats[2]);
  state.input_heartbeat.store(beats[3]);
  state.waiting_for_stage.store(stage);
  state.finished.store(finished);
  if (process > 0 || process < kStoppedElsewhere) return false;
  state.process.store(process);
  return true;
}

/// Files that all ranks need for their runs: traces, platforms, and the algorithms of the forecast.
bool is_for_all_ranks(const std::filesystem::path& file) {
  return file.extension() == ".yaml" || file.filename() == "predicted-all-reduces.csv";
}

}  // namespace

std::string random_token() {
  unsigned char bytes[16];
  if (getrandom(bytes, sizeof bytes, 0) != sizeof bytes)
    throw std::system_error(errno, std::generic_category(), "getrandom");
  std::string text;
  for (const unsigned char one : bytes) text += fmt::format("{:02x}", one);
  return text;
}

std::string address_towards(const std::string& host) {
  addrinfo hints{};
  hints.ai_family = AF_INET;
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(host.c_str(), "9", &hints, &found);
  if (error != 0)
    throw InputError(
        fmt::format("--hosts: {}: {}; give --bind, the address of this machine that the hosts can reach",
                    host, gai_strerror(error)));
  const int one = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  sockaddr_in own{};
  socklen_t size = sizeof own;
  const bool known = connect(one, found->ai_addr, found->ai_addrlen) == 0 &&  // sends nothing
                     getsockname(one, reinterpret_cast<sockaddr*>(&own), &size) == 0;
  close(one);
  freeaddrinfo(found);
  if (!known) throw InputError(fmt::format("--hosts: no route to {}; give --bind", host));
  return text_of(own);
}

Rendezvous::Rendezvous(const RemoteRanks& ranks, const SharedControlBlock& control,
                       std::filesystem::path folder, std::vector<std::string> arguments)
    : ranks_(ranks),
      control_(control),
      folder_(std::move(folder)),
      arguments_(std::move(arguments)),
      program_hash_(sha256(read_file(rank_program()))),
      hosts_(control.ranks()),
      of_rank_(control.ranks()),
      listener_(listening_socket(ranks.bind, port_)),
      accepting_([this] { accept_connections(); }) {}

Rendezvous::~Rendezvous() {
  stopping_ = true;
  shutdown(listener_, SHUT_RDWR);
  accepting_.join();  // no more connections come
  send_to_all({Frame::quit});
  for (Connection& one : connections_) shutdown(one.socket, SHUT_RDWR);
  for (Connection& one : connections_) {
    one.thread.join();
    close(one.socket);
  }
  close(listener_);
}

std::string Rendezvous::endpoint() const {
  return fmt::format("{}:{}", ranks_.bind.address, port_);
}

void Rendezvous::accept_connections() {
  PendingConnections pending(listener_, ranks_.token);
  while (!stopping_) {
    try {
      pending.wait([this](int socket, const std::string& peer) { admit(socket, peer); },
                   [this](const std::string& peer) { note_stranger(peer, "it did not show the token"); });
    } catch (const std::exception&) {
      const std::lock_guard lock(mutex_);
      if (!error_) error_ = std::current_exception();
    }
  }
}

void Rendezvous::admit(int socket, const std::string& peer) {
  Connection& added = connections_.emplace_back();
  added.socket = socket;
  added.peer = peer;
  added.thread = std::thread([this, &added] { serve(added); });
}

void Rendezvous::note_stranger(const std::string& peer, const std::string& why) {
  const int number = ++strangers_;
  if (number > kMostNamed) return;
  append_line(folder_ / "strangers.log",
              fmt::format("dropped a connection from {}: {}{}", peer, why,
                          number == kMostNamed ? "; later ones are not named" : ""));
}

void Rendezvous::serve(Connection& connection) {
  try {
    if (take_hello(connection)) return take_frames(connection);
    note_stranger(connection.peer, "it is none of the ranks that are missing");
    shutdown(connection.socket, SHUT_RDWR);
  } catch (const std::exception&) {
    const std::lock_guard lock(mutex_);
    if (!error_) error_ = std::current_exception();
  }
}

/// @return false if this is no rank, or a second connection of one
bool Rendezvous::take_hello(Connection& connection) {
  Frame frame;
  if (!receive_frame(connection.socket, frame, in_time()) || frame.kind != Frame::hello) return false;
  const auto rank = parse_integer(frame.name);
  if (!rank || *rank < 0 || *rank >= control_.ranks()) return false;
  std::istringstream lines(frame.body);
  std::string hash, cores, mhz;
  RankHost host;
  for (std::string* line : {&hash, &host.name, &host.address, &cores, &mhz, &host.processor})
    std::getline(lines, *line);
  if (hash != program_hash_)
    throw InputError(
        fmt::format("rank {} on {}: its stepcast-rank is not the one of this machine; install the same build "
                    "on all hosts",
                    *rank, host.name));
  host.cores = parse_integer(cores).value_or(0);
  host.mhz = parse_number(mhz).value_or(0);
  measure_clock(connection, host);
  const std::lock_guard lock(mutex_);
  const std::size_t index = *rank;
  if (of_rank_[index] != nullptr) return false;
  RankState& state = control_.rank(RankId(*rank));
  std::snprintf(state.host, sizeof state.host, "%s", host.name.c_str());
  connection.rank = RankId(*rank);
  if (!ranks_.hosts.empty()) {
    std::size_t place = 0, before = 0;
    while (before + ranks_.hosts[place].slots <= index) before += ranks_.hosts[place++].slots;
    if (!ranks_.hosts[place].address.empty()) host.address = ranks_.hosts[place].address;
  }
  hosts_[index] = host;
  of_rank_[index] = &connection;
  return true;
}

/// The agent reads its clock between the two ends of a round trip; the middle is the best estimate, and half
/// of the round trip its uncertainty. The fastest of several round trips counts. Source: D. Mills, "Internet
/// time synchronization: the Network Time Protocol", IEEE Trans. Comm. 39 (1991).
void Rendezvous::measure_clock(Connection& connection, RankHost& host) {
  host.clock_uncertainty = std::numeric_limits<double>::infinity();
  for (int i = 0; i < kClockPings; ++i) {
    const double begin = now().wall;
    Frame answer{Frame::clock};
    if (!send_frame(connection.socket, answer, in_time()) ||
        !receive_frame(connection.socket, answer, in_time()))
      return;
    const double end = now().wall, half = (end - begin) / 2;
    if (half >= host.clock_uncertainty) continue;
    host.clock_uncertainty = half;
    host.clock_offset = parse_number(answer.body).value_or(0) - (begin + half);
  }
}

void Rendezvous::take_frames(Connection& connection) {
  RankState& state = control_.rank(connection.rank);
  while (!stopping_) {
    wait_for_request(connection.socket);
    Frame frame;
    if (!receive_frame(connection.socket, frame, in_time())) break;
    if (frame.kind == Frame::state) {
      if (!read_state(frame.body, state)) break;
    } else if (frame.kind == Frame::file && is_plain_file_name(frame.name)) {
      take_file(connection, frame);
    }
  }
  if (!stopping_ && state.finished.load() == 0) state.process.store(kDiedElsewhere);
}

/// Rank 0 writes the results. Endpoints go on to all other ranks.
void Rendezvous::take_file(const Connection& connection, const Frame& frame) {
  if (frame.name.starts_with("store/")) {
    send_to_all(frame, connection.rank);
  } else if (frame.name == "ranks.log") {
    write_atomically(folder_ / fmt::format("rank-{}.log", connection.rank.value), frame.body);
  } else if (connection.rank == RankId{0} ||
             frame.name == fmt::format("rank-{}.error", connection.rank.value)) {
    write_atomically(folder_ / frame.name, frame.body);
  }
}

void Rendezvous::send(Connection& connection, const Frame& frame) {
  const std::lock_guard lock(connection.sending);
  if (!send_frame(connection.socket, frame, in_time())) shutdown(connection.socket, SHUT_RDWR);
}

void Rendezvous::send_to_all(const Frame& frame, RankId except) {
  for (Connection* one : of_rank_) {
    if (one != nullptr && one->rank != except) send(*one, frame);
  }
}

void Rendezvous::check() {
  {
    const std::lock_guard lock(mutex_);
    if (error_) std::rethrow_exception(error_);
    if (started_ || std::ranges::count(of_rank_, nullptr) > 0) return;
    started_ = true;
  }
  write_hosts();
  start_ranks();
}

RankId Rendezvous::unconnected(RankId suspect) {
  const std::lock_guard lock(mutex_);
  if (suspect.index() < of_rank_.size() && of_rank_[suspect.index()] == nullptr) return suspect;
  const auto first = std::ranges::find(of_rank_, nullptr);
  return first == of_rank_.end() ? RankId{} : RankId(first - of_rank_.begin());
}

void Rendezvous::start_ranks() {
  std::map<std::string, int> ranks_on;
  for (const RankHost& host : hosts_) ++ranks_on[host.name];
  for (const RankHost& host : hosts_) {
    if (ranks_.computes && ranks_on[host.name] > host.cores)
      throw InputError(fmt::format(
          "{}: expected at most {} ranks, its number of cores, got {}; with --sleep there can be more",
          host.name, host.cores, ranks_on[host.name]));
  }
  const std::string scenario = ranks_.scenario.filename().string();
  if (!is_plain_file_name(scenario))
    throw InputError(fmt::format("{}: expected a file name of letters, digits, '.', '_' and '-'", scenario));
  send_to_all({Frame::file, scenario, read_file(ranks_.scenario)});
  std::map<std::string, int> started_on;
  for (std::size_t rank = 0; rank < hosts_.size(); ++rank) {
    const RankHost& host = hosts_[rank];
    std::vector<std::string> words{std::to_string(hosts_.size()),
                                   "--address",
                                   host.address,
                                   "--local-rank",
                                   std::to_string(started_on[host.name]++),
                                   "--local-ranks",
                                   std::to_string(ranks_on[host.name])};
    words.insert(words.end(), arguments_.begin(), arguments_.end());
    std::string body;
    for (const std::string& word : words) body += word + '\0';
    send(*of_rank_[rank], {Frame::job, "", body});
  }
}

void Rendezvous::write_hosts() const {
  Results all{"hosts", {}};
  for (std::size_t rank = 0; rank < hosts_.size(); ++rank) {
    const RankHost& host = hosts_[rank];
    Row& row = all.rows.emplace_back();
    row.set("rank", static_cast<std::int64_t>(rank));
    row.set("host", host.name);
    row.set("address", host.address);
    row.set("cores", std::int64_t{host.cores});
    row.set("clock_mhz", host.mhz);
    row.set("clock_offset_seconds", host.clock_offset);
    row.set("clock_uncertainty_seconds", host.clock_uncertainty);
    row.set("processor", host.processor);
  }
  write_atomically(folder_ / "hosts.csv", to_csv(all));
}

void Rendezvous::open_stage(std::uint32_t stage) {
  for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
    const std::string name = entry.path().filename().string();
    if (entry.is_regular_file() && is_for_all_ranks(entry.path()) && is_plain_file_name(name))
      send_to_all({Frame::file, name, read_file(entry.path())});
  }
  send_to_all({Frame::stage, std::to_string(stage)});
}

}  // namespace stepcast
