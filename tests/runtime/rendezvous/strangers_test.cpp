#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <future>
#include <thread>
#include <vector>

#include "core/error.hpp"
#include "runtime/transport/tcp_transport.hpp"

// Processes that are no ranks of the run connect to the places where ranks meet.

namespace stepcast::strangers_test {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

int free_port() {
  return Listener("127.0.0.1").endpoint().port;
}

/// A connection of somebody who knows only the address.
class Stranger {
 public:
  explicit Stranger(int port) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    inet_pton(AF_INET, "127.0.0.1", &address.sin_addr);
    REQUIRE(connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  }
  Stranger(const Stranger&) = delete;
  ~Stranger() { close(socket_); }

  int socket() const { return socket_; }
  void say(const std::string& bytes) const { ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL); }
  /// Seconds until the other side closes the connection; 9 if it does not.
  double seconds_until_dropped() const {
    const auto begin = Clock::now();
    char byte = 0;
    while (Clock::now() - begin < 9s) {
      pollfd one{socket_, POLLIN, 0};
      if (poll(&one, 1, 9000) <= 0) break;
      if (recv(socket_, &byte, 1, 0) <= 0) return std::chrono::duration<double>(Clock::now() - begin).count();
    }
    return 9;
  }

 private:
  int socket_;
};

}  // namespace

TEST_CASE("ranks that connect by sockets pass by strangers, who are dropped",
          "[validate][transport][faults]") {
  const Listener first("127.0.0.1"), second("127.0.0.1");
  const std::vector<Endpoint> endpoints{first.endpoint(), second.endpoint()};
  const int port = first.endpoint().port;
  const Stranger silent(port), garbage(port), liar(port);
  garbage.say("GET / HTTP/1.1\r\n\r\n");
  const std::int64_t rank = 1;
  const std::uint64_t key = first.endpoint().key + 1;
  liar.say(std::string(reinterpret_cast<const char*>(&key), 8) +
           std::string(reinterpret_cast<const char*>(&rank), 8));
  const auto begin = Clock::now();
  auto other = std::async(std::launch::async, [&] {
    std::this_thread::sleep_for(200ms);
    return connect_sockets(second, RankId{1}, endpoints);
  });
  const auto transport = connect_sockets(first, RankId{0}, endpoints);
  const auto peer = other.get();
  CHECK(Clock::now() - begin < 1s);  // it did not wait for the silent one
  const float sent = 7;
  float got = 0;
  while (transport->send_some(RankId{1}, &sent, 1) == 0) {
  }
  while (peer->receive_some(RankId{0}, &got, 1, OnReceive::copy) == 0) {
  }
  CHECK(got == 7);
  for (const Stranger* one : {&silent, &garbage, &liar}) CHECK(one->seconds_until_dropped() < 1.2);
}

TEST_CASE("a rank that cannot reach another one says where, as one that lost its connection",
          "[validate][faults]") {
  const Listener own("127.0.0.1");
  const int port = free_port();
  CHECK_THROWS_MATCHES(
      connect_sockets(own, RankId{1}, {{"127.0.0.1", port, 0}, own.endpoint()}), PeerDisconnected,
      Catch::Message(fmt::format("rank 1 cannot connect to 127.0.0.1:{}: Connection refused", port)));
}

}  // namespace stepcast::strangers_test
