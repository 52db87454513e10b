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
#include <random>
#include <thread>
#include <vector>

#include "core/error.hpp"
#include "runtime/rendezvous/store.hpp"
#include "runtime/transport/tcp_transport.hpp"

// Processes that are no ranks of the run connect to the places where ranks meet.

namespace stepcast::strangers_test {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr const char* kToken = "the token of this run";

int free_port() {
  return Listener("127.0.0.1").endpoint().port;
}

/// A connection of somebody who knows only the address.
class Stranger {
 public:
  explicit Stranger(int port) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
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

struct Served {
  Served() {
    setenv("STEPCAST_STORE_TOKEN", kToken, 1);
    where = fmt::format("tcp:127.0.0.1:{}", port);
    store = open_store(where, 0, 10);
    store->put("word", "rank 0's");
  }
  /// A rank can still join and read.
  bool still_serves() const {
    const auto other = open_store(where, 1, 10);
    return other->get(0, "word") == "rank 0's";
  }

  int port = free_port();
  std::string where;
  std::unique_ptr<Store> store;
};

std::string with_length(const std::string& text) {
  const auto size = static_cast<std::uint32_t>(text.size());
  return std::string(reinterpret_cast<const char*>(&size), sizeof size) + text;
}

std::string request(char kind, std::int32_t rank, const std::string& key) {
  return std::string(1, kind) + std::string(reinterpret_cast<const char*>(&rank), sizeof rank) +
         with_length(key);
}

}  // namespace

TEST_CASE("a store drops within a second who says nothing, garbage or another token",
          "[validate][store][faults]") {
  const Served served;
  const std::string said =
      GENERATE(std::string(), std::string("p"), std::string("GET / HTTP/1.1\r\n\r\n"),
               with_length("a wrong token"), with_length(std::string(kToken) + "x"), with_length(""),
               std::string(4, '\xff'), std::string("\xff\xff\x00\x00", 4) + std::string(100, 'x'));
  const Stranger stranger(served.port);
  stranger.say(said);
  CHECK(stranger.seconds_until_dropped() < 1.2);
  CHECK(served.still_serves());
}

TEST_CASE("a store drops a slow stranger however regularly a byte comes", "[validate][store][faults]") {
  const Served served;
  const Stranger stranger(served.port);
  const auto begin = Clock::now();
  const auto slow = std::async(std::launch::async, [&] {
    for (int i = 0; i < 30; ++i, std::this_thread::sleep_for(100ms))
      stranger.say(i < 4 ? std::string(1, i == 0 ? 21 : 0) : "t");
  });
  CHECK(stranger.seconds_until_dropped() < 1.2);
  CHECK(Clock::now() - begin < 1500ms);
  CHECK(served.still_serves());
}

TEST_CASE("a store closes a connection that sends no valid request after the token",
          "[validate][store][faults]") {
  const Served served;
  const std::string said = GENERATE(request('x', 1, "word"), request('g', -1, "word"), request('g', 0, ""),
                                    request('g', 0, "../word"), request('p', 3, std::string(300, 'k')),
                                    std::string("g"), std::string("p\0\0", 3));
  const Stranger stranger(served.port);
  stranger.say(with_length(kToken) + said);
  CHECK(stranger.seconds_until_dropped() < 1.2);
  CHECK(served.still_serves());
}

TEST_CASE("a rank without the run's token is refused, and one without any is told so",
          "[validate][store][errors]") {
  const Served served;
  setenv("STEPCAST_STORE_TOKEN", "of another run", 1);
  CHECK_THROWS_MATCHES(
      open_store(served.where, 1, 10), RankLost,
      Catch::Message(served.where + " refused this rank: STEPCAST_STORE_TOKEN differs from rank 0's, or "
                                    "another program listens there"));
  unsetenv("STEPCAST_STORE_TOKEN");
  CHECK_THROWS_WITH(
      open_store(served.where, 1, 10),
      "--store tcp: expected a token of 1 to 256 characters in STEPCAST_STORE_TOKEN, the same for all "
      "ranks");
}

TEST_CASE("a value that is there is not overwritten", "[validate][store][errors]") {
  const Served served;
  const auto other = open_store(served.where, 1, 10);
  other->put("nccl", "first");
  CHECK_THROWS_WITH(other->put("nccl", "second"),
                    "rank 1 has put nccl into the store " + served.where + " before");
  CHECK(served.store->get(1, "nccl") == "first");
  CHECK_THROWS_WITH(served.store->put("word", "other"),
                    "rank 0 has put word into the store " + served.where + " before");
  other->put("later", "value");  // the connection is still good
  CHECK(served.store->get(1, "later") == "value");
}

TEST_CASE("a client does not wait for ever on a server that says nothing", "[validate][store][faults]") {
  setenv("STEPCAST_STORE_TOKEN", kToken, 1);
  const Listener silent("127.0.0.1");
  const auto begin = Clock::now();
  CHECK_THROWS_AS(open_store(fmt::format("tcp:127.0.0.1:{}", silent.endpoint().port), 1, 0.3), RankLost);
  CHECK(Clock::now() - begin < 3s);
}

TEST_CASE("a store accepts again after it had no free file descriptor", "[validate][store][faults]") {
  const Served served;
  const Stranger ready(served.port);  // a file descriptor for the stranger is taken before the limit
  CHECK(served.still_serves());  // its threads have started: a sanitizer needs file descriptors to check one
  rlimit before{};
  getrlimit(RLIMIT_NOFILE, &before);
  std::vector<int> fillers;
  const rlimit small{64, before.rlim_max};
  const int spare = dup(0);
  setrlimit(RLIMIT_NOFILE, &small);
  for (int one = dup(0); one >= 0; one = dup(0)) fillers.push_back(one);
  close(spare);
  {
    const Stranger unaccepted(served.port);  // takes the spare one: accept fails with "too many open files"
    std::this_thread::sleep_for(300ms);
  }
  for (const int one : fillers) close(one);
  setrlimit(RLIMIT_NOFILE, &before);
  CHECK(served.still_serves());
}

TEST_CASE("a thousand drawn messages of strangers end no store", "[validate][store][faults]") {
  const Served served;
  std::mt19937 draw(1);
  std::vector<std::unique_ptr<Stranger>> open;
  for (int i = 0; i < 1000; ++i) {
    auto stranger = std::make_unique<Stranger>(served.port);
    std::string bytes = draw() % 2 == 0 ? with_length(kToken) : "";
    const char kinds[] = {'p', 'g', 'x', '\0'};
    if (draw() % 2 == 0) bytes += kinds[draw() % 4];
    for (auto left = draw() % 40; left-- > 0;)
      bytes += static_cast<char>(draw() % (draw() % 2 == 0 ? 4 : 256));
    stranger->say(bytes);
    if (i % 20 == 0) open.push_back(std::move(stranger));  // others hang up at once
  }
  CHECK(served.still_serves());
  for (const auto& one : open) CHECK(one->seconds_until_dropped() < 9);
  CHECK(served.still_serves());
}

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
