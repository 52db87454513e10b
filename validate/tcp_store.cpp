#include "validate/tcp_store.hpp"

#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <thread>
#include <vector>

#include "core/error.hpp"
#include "validate/left_values.hpp"
#include "validate/socket_text.hpp"
#include "validate/tcp_address.hpp"
#include "validate/tcp_client.hpp"

namespace stepcast {
namespace {

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
    const sockaddr_in address = tcp_address(where_);
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

}  // namespace

std::unique_ptr<Store> open_tcp_store(const std::string& where, int rank, double seconds) {
  if (rank == 0) return std::make_unique<Serving>(where, seconds);
  return open_tcp_client(where, rank, seconds);
}

}  // namespace stepcast
