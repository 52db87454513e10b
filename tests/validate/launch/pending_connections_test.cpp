#include "validate/launch/pending_connections.hpp"

#include <arpa/inet.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <deque>
#include <thread>

#include "runtime/rendezvous/store.hpp"

namespace stepcast::pending_connections_test {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

const std::string kToken = "0123456789abcdef0123456789abcdef";

/// A queue at a port of the loopback, in a thread of its own.
struct Served {
  Served() {
    sockaddr_in at = address();
    socklen_t size = sizeof at;
    REQUIRE(bind(listener, reinterpret_cast<const sockaddr*>(&at), size) == 0);
    REQUIRE(listen(listener, SOMAXCONN) == 0);
    getsockname(listener, reinterpret_cast<sockaddr*>(&at), &size);
    port = ntohs(at.sin_port);
    thread = std::thread([this] {
      PendingConnections queue(listener, kToken);
      while (!stopping)
        queue.wait([this](int socket, const std::string&) { close(socket), ++admitted; },
                   [this](const std::string&) { ++dropped; });
    });
  }
  ~Served() {
    stopping = true;
    thread.join();
    close(listener);
  }

  sockaddr_in address() const {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    at.sin_port = htons(port);
    return at;
  }

  /// A connection that has said something.
  int said(const std::string& bytes) const {
    int socket = -1;  // the served side, a thread of this process, may hold all descriptors for a moment
    for (const auto end = Clock::now() + 5s; socket < 0 && Clock::now() < end;) {
      socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
      if (socket < 0) std::this_thread::sleep_for(1ms);
    }
    const sockaddr_in at = address();
    REQUIRE(connect(socket, reinterpret_cast<const sockaddr*>(&at), sizeof at) == 0);
    ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    return socket;
  }

  int port = 0, listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  std::atomic<int> admitted = 0, dropped = 0;
  std::atomic<bool> stopping = false;
  std::thread thread;
};

std::string with_length(const std::string& text) {
  const std::uint32_t size = text.size();
  return std::string(reinterpret_cast<const char*>(&size), sizeof size) + text;
}

/// What connections without the token send: nothing, garbage, a request to another server, a part of a token,
/// a wrong one.
const std::vector<std::string>& words() {
  static const std::vector<std::string> all{"",
                                            std::string(200, '\xff'),
                                            "GET / HTTP/1.1\r\n\r\n",
                                            with_length(kToken).substr(0, 20),
                                            with_length(kToken.substr(0, 31) + "x"),
                                            with_length(""),
                                            with_length(kToken + "0")};
  return all;
}

/// A rank shows its token, as an agent does: again if it is dropped. @return whether it is welcome
bool joins(const Served& served) {
  for (int attempt = 0; attempt < 20; ++attempt) {
    const int socket = served.said(with_length(kToken));
    char reply = 0;
    const bool welcome = receive_all(socket, &reply, 1, StoreClock::now() + 10s) && reply == 'w';
    close(socket);
    if (welcome) return true;
    std::this_thread::sleep_for(10ms);
  }
  return false;
}

/// Waits for a count of the other thread.
bool reaches(const std::atomic<int>& count, int value) {
  for (const auto end = Clock::now() + 5s; count < value && Clock::now() < end;)
    std::this_thread::sleep_for(10ms);
  return count >= value;
}

/// Seconds until the other side closes the connection; 9 if it does not.
double seconds_until_dropped(int socket) {
  const auto begin = Clock::now();
  pollfd one{socket, POLLIN, 0};
  char byte = 0;
  if (poll(&one, 1, 9000) <= 0 || recv(socket, &byte, 1, 0) > 0) return 9;
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

}  // namespace

TEST_CASE("who does not show the token is dropped within a second and forgotten",
          "[validate][launch][faults]") {
  Served served;
  for (const std::string& word : words()) {
    CAPTURE(word.size());
    const int other = served.said(word);
    CHECK(seconds_until_dropped(other) < 1.5);
    close(other);
  }
  const int slow = served.said("");
  const auto begin = Clock::now();
  std::thread speaking([slow] {
    for (int i = 0; i < 20; ++i, std::this_thread::sleep_for(100ms))
      ::send(slow, i == 0 ? " " : "\0", 1, MSG_NOSIGNAL);
  });
  seconds_until_dropped(slow);
  CHECK(Clock::now() - begin < 1500ms);
  speaking.join();
  close(slow);
  CHECK(reaches(served.dropped, static_cast<int>(words().size()) + 1));
  CHECK(joins(served));
  CHECK(reaches(served.admitted, 1));
}

TEST_CASE("10,000 connections without the token, of which hundreds stay open, keep no rank out",
          "[validate][launch][faults]") {
  Served served;
  std::deque<int> open;
  int joined = 0;
  for (int i = 0; i < 10000; ++i) {
    open.push_back(served.said(words()[static_cast<std::size_t>(i) % words().size()]));
    if (open.size() > 600) close(open.front()), open.pop_front();
    if (i % 500 == 499) joined += joins(served) ? 1 : 0;
  }
  CHECK(joined == 20);
  for (const int one : open) close(one);
  CHECK(reaches(served.dropped, 10000));
  CHECK(reaches(served.admitted, 20));
}

TEST_CASE("connections without the token that take all file descriptors keep no rank out",
          "[validate][launch][faults]") {
  rlimit before{};
  getrlimit(RLIMIT_NOFILE, &before);
  Served served;
  std::vector<int> open;
  for (int i = 0; i < 150; ++i) open.push_back(served.said(""));
  const int last = served.said(with_length(kToken).substr(0, 4));
  const rlimit small{static_cast<rlim_t>(last) + 20, before.rlim_max};  // room for a few on the other side
  setrlimit(RLIMIT_NOFILE, &small);
  CHECK(joins(served));
  setrlimit(RLIMIT_NOFILE, &before);
  for (const int one : open) close(one);
  close(last);
}

}  // namespace stepcast::pending_connections_test
