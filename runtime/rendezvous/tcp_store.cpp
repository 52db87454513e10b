#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <list>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "core/text.hpp"
#include "runtime/rendezvous/store.hpp"

namespace stepcast {
namespace {

/// Key-value table in the process that serves a store (rank 0). Thread-safe.
class KeyValueTable {
 public:
  /// @param seconds  timeout of `get`
  explicit KeyValueTable(double seconds) : seconds_(seconds) {}

  /// @return false, and the value there stays, if `rank` has put one under `key` before
  bool put(int rank, const std::string& key, const std::string& value) {
    {
      const std::lock_guard lock(mutex_);
      if (!values_.emplace(std::pair{rank, key}, value).second) return false;
    }
    changed_.notify_all();
    return true;
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

/// A stranger has this long to show the token, and a begun request to arrive.
constexpr std::chrono::milliseconds kStrangerTimeout(900);
/// Connections at once. A run has a few for each rank; beyond this number only strangers can be at work.
constexpr std::size_t kMostConnections = 1024;

StoreClock::time_point after(double seconds) {
  return StoreClock::now() +
         std::chrono::duration_cast<StoreClock::duration>(std::chrono::duration<double>(seconds));
}

std::string token_of_environment() {
  const char* token = std::getenv(kStoreToken);
  if (token != nullptr && *token != '\0' && std::strlen(token) <= kMaxStoreKey) return token;
  throw InputError(
      fmt::format("--store tcp: expected a token of 1 to {} characters in {}, the same for all ranks",
                  kMaxStoreKey, kStoreToken));
}

/// Store of the ranks other than 0. Each call uses a connection of its own, so that a call that waits for a
/// value does not block the call that puts it. Idle connections are used again.
class TcpClientStore : public Store {
 public:
  TcpClientStore(std::string where, int rank, double seconds)
      : where_(std::move(where)),
        token_(token_of_environment()),
        rank_(rank),
        seconds_(seconds),
        idle_{connect_to_rank_0()} {}
  ~TcpClientStore() override {
    for (const int one : idle_) close(one);
  }

  void put(const std::string& key, const std::string& value) override {
    check_sizes(key, value);
    Call call(*this);
    const auto end = after(seconds_);
    char reply = 0;
    if (!send_request(call.socket, {'p', rank_, key, value}, end) ||
        !receive_all(call.socket, &reply, 1, end))
      throw_rank_0_lost();
    call.answered = true;
    if (reply != 'v') throw std::runtime_error(store_repeated_text(rank_, key, where_));
  }
  std::string get(int rank, const std::string& key) override {
    Call call(*this);
    const auto end = after(seconds_ + 5);  // rank 0 itself answers after `seconds`
    char reply = 0;
    std::string value;
    if (!send_request(call.socket, {'g', rank, key, {}}, end) || !receive_all(call.socket, &reply, 1, end))
      throw_rank_0_lost();
    if (reply == 'v' && !receive_text(call.socket, value, kMaxStoreText, end)) throw_rank_0_lost();
    call.answered = true;
    if (reply != 'v') throw RankLost(store_timeout_text(rank, key, where_, seconds_));
    return value;
  }

 private:
  /// Holds a connection for the duration of one call, and closes it unless the whole answer came.
  struct Call {
    explicit Call(TcpClientStore& owner) : store(owner), socket(owner.acquire_connection()) {}
    Call(const Call&) = delete;
    ~Call() { answered ? store.release_connection(socket) : static_cast<void>(close(socket)); }

    TcpClientStore& store;
    int socket;
    bool answered = false;
  };

  static void check_sizes(const std::string& key, const std::string& value) {
    if (key.size() > kMaxStoreKey || value.size() > kMaxStoreText)
      throw std::invalid_argument("store: the key or the value is too long");
  }

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
    const auto end = after(seconds_);
    while (true) {
      const int descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
      const timeval timeout{static_cast<time_t>(seconds_) + 1, 0};  // Linux also limits connect by it
      setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof timeout);
      if (connect(descriptor, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0)
        return welcomed(descriptor);
      const std::string reason = std::strerror(errno);
      close(descriptor);
      if (StoreClock::now() > end)
        throw RankLost(
            fmt::format("rank 0 does not listen at {} within {:g} s: {}", where_, seconds_, reason));
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  }

  /// @return `descriptor`, once rank 0 has accepted the token
  int welcomed(int descriptor) const {
    const auto end = after(std::max(seconds_, 1.0));
    char reply = 0;
    if (send_text(descriptor, token_, end) && receive_all(descriptor, &reply, 1, end) && reply == 'w')
      return descriptor;
    close(descriptor);
    throw RankLost(
        fmt::format("{} refused this rank: {} differs from rank 0's, or another program listens there",
                    where_, kStoreToken));
  }

  [[noreturn]] void throw_rank_0_lost() const {
    throw RankLost(fmt::format("rank 0 is gone: its store {} does not answer", where_));
  }

  std::string where_, token_;
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
        token_(token_of_environment()),
        seconds_(seconds),
        values_(seconds),
        listener_(listening_socket()),
        accepting_thread_([this] { accept_connections(); }) {}
  ~TcpServerStore() override {
    values_.close();
    stopping_ = true;
    shutdown(listener_, SHUT_RDWR);
    accepting_thread_.join();  // no more connections come
    for (Connection& one : connections_) shutdown(one.socket, SHUT_RDWR);
    for (Connection& one : connections_) one.end();
    close(listener_);
  }

  void put(const std::string& key, const std::string& value) override {
    if (!values_.put(0, key, value)) throw std::runtime_error(store_repeated_text(0, key, where_));
  }
  std::string get(int rank, const std::string& key) override {
    std::string value;
    if (!values_.get(rank, key, value)) throw RankLost(store_timeout_text(rank, key, where_, seconds_));
    return value;
  }

 private:
  struct Connection {
    int socket = -1;
    std::atomic<bool> done = false;
    std::thread thread = {};

    void end() {
      thread.join();
      close(socket);
    }
  };

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

  /// Accepts until the store is closed. A failing call, such as one without a free file descriptor, does not
  /// end that: later ranks must still be able to join.
  void accept_connections() {
    while (!stopping_) {
      const int one = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      connections_.remove_if([](Connection& old) {
        if (!old.done) return false;
        old.end();
        return true;
      });
      if (one < 0) {
        if (errno != EINTR) std::this_thread::sleep_for(std::chrono::milliseconds(10));
        continue;
      }
      if (connections_.size() >= kMostConnections) {
        close(one);
        continue;
      }
      Connection& added = connections_.emplace_back();
      added.socket = one;
      try {
        added.thread = std::thread([this, &added] {
          if (is_welcome(added.socket)) serve(added.socket);
          shutdown(added.socket, SHUT_RDWR);
          added.done = true;
        });
      } catch (const std::system_error&) {  // no more threads
        close(one);
        connections_.pop_back();
      }
    }
  }

  bool is_welcome(int socket) const {
    const auto end = StoreClock::now() + kStrangerTimeout;
    std::string token;
    return receive_text(socket, token, kMaxStoreKey, end) && equal_tokens(token_, token) &&
           send_all(socket, "w", 1, end);
  }

  void serve(int socket) {
    while (!stopping_) {
      wait_for_request(socket);
      StoreRequest request;
      if (!receive_request(socket, request, StoreClock::now() + kStrangerTimeout) || !answer(socket, request))
        return;
    }
  }

  bool answer(int socket, const StoreRequest& request) {
    const auto in_time = [] { return after(10); };  // for a value of 64 KiB
    if (request.kind == 'p')
      return send_all(socket, values_.put(request.rank, request.key, request.value) ? "v" : "d", 1,
                      in_time());
    std::string value;
    if (!values_.get(request.rank, request.key, value)) return send_all(socket, "t", 1, in_time());
    return send_all(socket, "v", 1, in_time()) && send_text(socket, value, in_time());
  }

  std::string where_, token_;
  double seconds_;
  KeyValueTable values_;
  std::atomic<bool> stopping_ = false;
  int listener_;
  std::list<Connection> connections_;  ///< used by accepting_thread_ until it ends
  std::thread accepting_thread_;       // declared last: it uses the other members
};

}  // namespace

std::unique_ptr<Store> open_tcp_store(const std::string& where, int rank, double seconds) {
  static_cast<void>(tcp_address(where));  // reports a wrong address before a missing token
  if (rank == 0) return std::make_unique<TcpServerStore>(where, seconds);
  return std::make_unique<TcpClientStore>(where, rank, seconds);
}

}  // namespace stepcast
