#include "runtime/rendezvous/tcp_store.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "core/error.hpp"
#include "core/parse_number.hpp"

namespace stepcast {
namespace {

/// Key-value table in the process that serves a store (rank 0). Thread-safe.
class KeyValueTable {
 public:
  /// @param seconds  timeout of `get`
  explicit KeyValueTable(double seconds) : seconds_(seconds) {}

  void put(int rank, const std::string& key, const std::string& value) {
    {
      const std::lock_guard lock(mutex_);
      values_[{rank, key}] = value;
    }
    changed_.notify_all();
  }

  /// Waits for the value that `rank` put under `key`.
  /// @return false if no value came in time or the table was closed
  bool get(int rank, const std::string& key, std::string& value) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::duration<double>(seconds_), [&] {
      return closed_ || values_.contains({rank, key});
    });
    const auto found = values_.find({rank, key});
    if (found == values_.end()) return false;
    value = found->second;
    return true;
  }

  /// Ends all waiting calls of `get`.
  void close() {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    changed_.notify_all();
  }

 private:
  double seconds_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::pair<int, std::string>, std::string> values_;
  bool closed_ = false;
};

/// The address of a store such as "tcp:127.0.0.1:4000". @throws InputError for any other text
sockaddr_in tcp_address(const std::string& store) {
  const auto colon = store.rfind(':');
  const std::string host = colon > 4 ? store.substr(4, colon - 4) : "";
  const auto port = parse_integer(store.substr(colon + 1));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  if (!port || *port < 1 || *port > 65535 || inet_pton(AF_INET, host.c_str(), &address.sin_addr) != 1) {
    throw InputError(
        fmt::format("--store: expected tcp:ADDRESS:PORT with an IPv4 address, got \"{}\"", store));
  }
  address.sin_port = htons(static_cast<std::uint16_t>(*port));
  return address;
}

constexpr std::uint32_t kMaxText = 1 << 16;

/// Sends or receives exactly `bytes` bytes over a blocking socket. @return false if the peer closed it
bool send_all(int socket, const void* data, std::size_t bytes) {
  const auto* from = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t some = ::send(socket, from, bytes, MSG_NOSIGNAL);
    if (some < 0 && errno == EINTR) continue;
    if (some <= 0) return false;
    from += some;
    bytes -= static_cast<std::size_t>(some);
  }
  return true;
}

bool receive_all(int socket, void* data, std::size_t bytes) {
  auto* to = static_cast<char*>(data);
  while (bytes > 0) {
    const ssize_t some = ::recv(socket, to, bytes, 0);
    if (some < 0 && errno == EINTR) continue;
    if (some <= 0) return false;
    to += some;
    bytes -= static_cast<std::size_t>(some);
  }
  return true;
}

/// Sends or receives a text of at most 64 KiB: its length (32 bits), then its bytes.
/// @return false if the peer closed the socket, or if a received length is too large
bool send_text(int socket, const std::string& text) {
  const auto size = static_cast<std::uint32_t>(text.size());
  return send_all(socket, &size, sizeof size) && send_all(socket, text.data(), text.size());
}

bool receive_text(int socket, std::string& text) {
  std::uint32_t size = 0;
  if (!receive_all(socket, &size, sizeof size) || size > kMaxText) return false;
  text.resize(size);
  return receive_all(socket, text.data(), size);
}

using Clock = std::chrono::steady_clock;

/// Store of the ranks other than 0. Each call uses a connection of its own, so that a call that waits for a
/// value does not block the call that puts it. Idle connections are used again.
class TcpClientStore : public Store {
 public:
  TcpClientStore(std::string where, int rank, double seconds)
      : where_(std::move(where)), rank_(rank), seconds_(seconds), idle_{connect_to_rank_0()} {}
  ~TcpClientStore() override {
    for (const int one : idle_) close(one);
  }

  void put(const std::string& key, const std::string& value) override {
    const Call call(*this);
    if (!send_request(call.socket, 'p', rank_, key) || !send_text(call.socket, value)) throw_rank_0_lost();
  }
  std::string get(int rank, const std::string& key) override {
    const Call call(*this);
    char reply = 0;
    std::string value;
    if (!send_request(call.socket, 'g', rank, key) || !receive_all(call.socket, &reply, 1))
      throw_rank_0_lost();
    if (reply != 'v') throw RankLost(store_timeout_text(rank, key, where_, seconds_));
    if (!receive_text(call.socket, value)) throw_rank_0_lost();
    return value;
  }

 private:
  /// Holds a connection for the duration of one call.
  struct Call {
    explicit Call(TcpClientStore& owner) : store(owner), socket(owner.acquire_connection()) {}
    Call(const Call&) = delete;
    ~Call() { store.release_connection(socket); }

    TcpClientStore& store;
    int socket;
  };

  int acquire_connection() {
    {
      const std::lock_guard lock(mutex_);
      if (!idle_.empty()) {
        const int one = idle_.back();
        idle_.pop_back();
        return one;
      }
    }
    return connect_to_rank_0();
  }
  void release_connection(int socket) {
    const std::lock_guard lock(mutex_);
    idle_.push_back(socket);
  }

  /// Retries until rank 0 listens.
  int connect_to_rank_0() const {
    const sockaddr_in address = tcp_address(where_);
    const auto end = Clock::now() + std::chrono::duration<double>(seconds_);
    while (true) {
      const int descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
      if (connect(descriptor, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0)
        return descriptor;
      const std::string reason = std::strerror(errno);
      close(descriptor);
      if (Clock::now() > end)
        throw RankLost(
            fmt::format("rank 0 does not listen at {} within {:g} s: {}", where_, seconds_, reason));
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  }

  static bool send_request(int socket, char request, std::int32_t rank, const std::string& key) {
    return send_all(socket, &request, 1) && send_all(socket, &rank, sizeof rank) && send_text(socket, key);
  }
  [[noreturn]] void throw_rank_0_lost() const {
    throw RankLost(fmt::format("rank 0 is gone: its store {} does not answer", where_));
  }

  std::string where_;
  int rank_;
  double seconds_;
  std::mutex mutex_;  ///< guards idle_
  std::vector<int> idle_;
};

/// Store of rank 0: holds the values and serves each connection in a thread of its own.
class TcpServerStore : public Store {
 public:
  TcpServerStore(std::string where, double seconds)
      : where_(std::move(where)),
        seconds_(seconds),
        values_(seconds),
        listener_(listening_socket()),
        accepting_thread_([this] { accept_connections(); }) {}
  ~TcpServerStore() override {
    values_.close();
    shutdown(listener_, SHUT_RDWR);
    accepting_thread_.join();  // no more connections come
    for (const int one : connections_) shutdown(one, SHUT_RDWR);
    for (std::thread& one : connection_threads_) one.join();
    for (const int one : connections_) close(one);
    close(listener_);
  }

  void put(const std::string& key, const std::string& value) override { values_.put(0, key, value); }
  std::string get(int rank, const std::string& key) override {
    std::string value;
    if (!values_.get(rank, key, value)) throw RankLost(store_timeout_text(rank, key, where_, seconds_));
    return value;
  }

 private:
  int listening_socket() const {
    const sockaddr_in address = tcp_address(where_);
    const int descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const int yes = 1;
    setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (bind(descriptor, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
        listen(descriptor, 64) != 0) {
      const std::string reason = std::strerror(errno);
      close(descriptor);
      throw InputError(fmt::format("--store {}: cannot listen there: {}", where_, reason));
    }
    return descriptor;
  }

  void accept_connections() {
    while (true) {
      const int one = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      if (one < 0 && errno == EINTR) continue;
      if (one < 0) return;
      connections_.push_back(one);
      connection_threads_.emplace_back([this, one] { serve_connection(one); });
    }
  }

  void serve_connection(int socket) {
    char request = 0;
    std::int32_t rank = 0;
    std::string key, value;
    while (receive_all(socket, &request, 1) && receive_all(socket, &rank, sizeof rank) &&
           receive_text(socket, key)) {
      if (request == 'p') {
        if (!receive_text(socket, value)) return;
        values_.put(rank, key, value);
      } else {
        const bool found = values_.get(rank, key, value);
        const char reply = found ? 'v' : 't';
        if (!send_all(socket, &reply, 1) || (found && !send_text(socket, value))) return;
      }
    }
  }

  std::string where_;
  double seconds_;
  KeyValueTable values_;
  int listener_;
  std::vector<int> connections_;                 ///< used by accepting_thread_ until it ends
  std::vector<std::thread> connection_threads_;  ///< used by accepting_thread_ until it ends
  std::thread accepting_thread_;                 // declared last: it uses the other members
};

}  // namespace

std::unique_ptr<Store> open_tcp_store(const std::string& where, int rank, double seconds) {
  if (rank == 0) return std::make_unique<TcpServerStore>(where, seconds);
  return std::make_unique<TcpClientStore>(where, rank, seconds);
}

}  // namespace stepcast
