#include "validate/tcp_client.hpp"

#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <mutex>
#include <thread>
#include <vector>

#include "core/error.hpp"
#include "validate/socket_text.hpp"
#include "validate/tcp_address.hpp"
#include "validate/tcp_store.hpp"

namespace stepcast {
namespace {

using Clock = std::chrono::steady_clock;

/// The other ranks. A call has a connection to itself: one that waits for a value keeps nobody from leaving
/// the value that others wait for. Connections are kept for later calls.
class Connected : public Store {
 public:
  Connected(std::string where, int rank, double seconds)
      : where_(std::move(where)), rank_(rank), seconds_(seconds), idle_{connected()} {}
  ~Connected() override {
    for (const int one : idle_) close(one);
  }

  void put(const std::string& key, const std::string& value) override {
    const Call call(*this);
    if (!asked(call.socket, 'p', rank_, key) || !sent_text(call.socket, value)) gone();
  }
  std::string get(int rank, const std::string& key) override {
    const Call call(*this);
    char reply = 0;
    std::string value;
    if (!asked(call.socket, 'g', rank, key) || !received(call.socket, &reply, 1)) gone();
    if (reply != 'v') throw RankLost(nothing_left(rank, key, where_, seconds_));
    if (!received_text(call.socket, value)) gone();
    return value;
  }

 private:
  /// A connection for as long as a call takes.
  struct Call {
    explicit Call(Connected& owner) : store(owner), socket(owner.taken()) {}
    Call(const Call&) = delete;
    ~Call() { store.give_back(socket); }

    Connected& store;
    int socket;
  };

  int taken() {
    {
      const std::lock_guard lock(mutex_);
      if (!idle_.empty()) {
        const int one = idle_.back();
        idle_.pop_back();
        return one;
      }
    }
    return connected();
  }
  void give_back(int socket) {
    const std::lock_guard lock(mutex_);
    idle_.push_back(socket);
  }

  /// Tries until rank 0 listens.
  int connected() const {
    const sockaddr_in address = tcp_address(where_);
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

  static bool asked(int socket, char what, std::int32_t rank, const std::string& key) {
    return sent(socket, &what, 1) && sent(socket, &rank, sizeof rank) && sent_text(socket, key);
  }
  [[noreturn]] void gone() const {
    throw RankLost(fmt::format("rank 0 is gone: its store {} does not answer", where_));
  }

  std::string where_;
  int rank_;
  double seconds_;
  std::mutex mutex_;  ///< of idle_
  std::vector<int> idle_;
};

}  // namespace

std::unique_ptr<Store> open_tcp_client(const std::string& where, int rank, double seconds) {
  return std::make_unique<Connected>(where, rank, seconds);
}

}  // namespace stepcast
