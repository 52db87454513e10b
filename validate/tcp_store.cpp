#include "validate/tcp_store.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>
#include <vector>

#include "core/error.hpp"
#include "core/parse_number.hpp"
#include "validate/left_values.hpp"
#include "validate/socket_text.hpp"

namespace stepcast {
namespace {

using Clock = std::chrono::steady_clock;

/// "tcp:127.0.0.1:4000"
sockaddr_in address_of(const std::string& where) {
  const auto colon = where.rfind(':');
  const std::string host = colon > 4 ? where.substr(4, colon - 4) : "";
  const auto port = parse_integer(where.substr(colon + 1));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  if (!port || *port < 1 || *port > 65535 || inet_pton(AF_INET, host.c_str(), &address.sin_addr) != 1) {
    throw InputError(
        fmt::format("--store: expected tcp:ADDRESS:PORT with an IPv4 address, got \"{}\"", where));
  }
  address.sin_port = htons(static_cast<std::uint16_t>(*port));
  return address;
}

/// Rank 0: keeps the values, and answers each other rank in a thread of its own.
class Serving : public Store {
 public:
  Serving(std::string where, double seconds)
      : where_(std::move(where)),
        seconds_(seconds),
        values_(seconds),
        listener_(listening()),
        accepting_([this] { accept_all(); }) {}
  ~Serving() override {
    values_.close();
    shutdown(listener_, SHUT_RDWR);
    accepting_.join();  // no more come
    for (const int one : connections_) shutdown(one, SHUT_RDWR);
    for (std::thread& one : answering_) one.join();
    for (const int one : connections_) close(one);
    close(listener_);
  }

  void put(const std::string& key, const std::string& value) override { values_.put(0, key, value); }
  std::string get(int rank, const std::string& key) override {
    std::string value;
    if (!values_.get(rank, key, value)) throw RankLost(nothing_left(rank, key, where_, seconds_));
    return value;
  }

 private:
  int listening() const {
    const sockaddr_in address = address_of(where_);
    const int made = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const int yes = 1;
    setsockopt(made, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (bind(made, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
        listen(made, 64) != 0) {
      const std::string reason = std::strerror(errno);
      close(made);
      throw InputError(fmt::format("--store {}: cannot listen there: {}", where_, reason));
    }
    return made;
  }

  void accept_all() {
    while (true) {
      const int one = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      if (one < 0 && errno == EINTR) continue;
      if (one < 0) return;
      connections_.push_back(one);
      answering_.emplace_back([this, one] { answer(one); });
    }
  }

  void answer(int socket) {
    char what = 0;
    std::int32_t rank = 0;
    std::string key, value;
    while (received(socket, &what, 1) && received(socket, &rank, sizeof rank) && received_text(socket, key)) {
      if (what == 'p') {
        if (!received_text(socket, value)) return;
        values_.put(rank, key, value);
      } else {
        const bool found = values_.get(rank, key, value);
        const char reply = found ? 'v' : 't';
        if (!sent(socket, &reply, 1) || (found && !sent_text(socket, value))) return;
      }
    }
  }

  std::string where_;
  double seconds_;
  LeftValues values_;
  int listener_;
  std::vector<int> connections_;        ///< of the thread that accepts, until it has ended
  std::vector<std::thread> answering_;  ///< so are these
  std::thread accepting_;               // last: it uses the others
};

/// The other ranks.
class Connected : public Store {
 public:
  Connected(std::string where, int rank, double seconds)
      : where_(std::move(where)), rank_(rank), seconds_(seconds), socket_(connected()) {}
  ~Connected() override { close(socket_); }

  void put(const std::string& key, const std::string& value) override {
    if (!asked('p', rank_, key) || !sent_text(socket_, value)) gone();
  }
  std::string get(int rank, const std::string& key) override {
    char reply = 0;
    std::string value;
    if (!asked('g', rank, key) || !received(socket_, &reply, 1)) gone();
    if (reply != 'v') throw RankLost(nothing_left(rank, key, where_, seconds_));
    if (!received_text(socket_, value)) gone();
    return value;
  }

 private:
  /// Tries until rank 0 listens.
  int connected() const {
    const sockaddr_in address = address_of(where_);
    const auto end = Clock::now() + std::chrono::duration<double>(seconds_);
    while (true) {
      const int made = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
      if (connect(made, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) return made;
      const std::string reason = std::strerror(errno);
      close(made);
      if (Clock::now() > end)
        throw RankLost(fmt::format("rank 0 does not serve {} within {:g} s: {}", where_, seconds_, reason));
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  }

  bool asked(char what, std::int32_t rank, const std::string& key) const {
    return sent(socket_, &what, 1) && sent(socket_, &rank, sizeof rank) && sent_text(socket_, key);
  }
  [[noreturn]] void gone() const {
    throw RankLost(fmt::format("rank 0 is gone: its store {} does not answer", where_));
  }

  std::string where_;
  int rank_;
  double seconds_;
  int socket_;
};

}  // namespace

std::unique_ptr<Store> open_tcp_store(const std::string& where, int rank, double seconds) {
  if (rank == 0) return std::make_unique<Serving>(where, seconds);
  return std::make_unique<Connected>(where, rank, seconds);
}

}  // namespace stepcast
