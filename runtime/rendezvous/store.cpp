#include "runtime/rendezvous/store.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <thread>

#include "core/error.hpp"
#include "core/os/files.hpp"

namespace stepcast {

Store::Store(std::filesystem::path folder, int rank, double seconds)
    : folder_(std::move(folder)), rank_(rank), seconds_(seconds) {
  check_writable(folder_);
}

std::filesystem::path Store::file_of(int rank, const std::string& key) const {
  return folder_ / fmt::format("{}-of-rank-{}", key, rank);
}

void Store::put(const std::string& key, const std::string& value) const {
  const std::filesystem::path file = file_of(rank_, key);
  if (std::filesystem::exists(file))
    throw std::runtime_error(
        fmt::format("rank {} has put {} into the store {} before", rank_, key, folder_.string()));
  write_atomically(file, value);
}

std::string Store::get(int rank, const std::string& key) const {
  const auto end = StoreClock::now() + std::chrono::duration<double>(seconds_);
  const std::filesystem::path file = file_of(rank, key);
  while (!std::filesystem::exists(file)) {
    if (StoreClock::now() > end)
      throw RankLost(fmt::format("rank {} put no {} into the store {} within {:g} s", rank, key,
                                 folder_.string(), seconds_));
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return read_file(file);
}

namespace {

/// Waits until the socket can be read or written. @return false if the time is over first
bool is_ready(int socket, short event, StoreClock::time_point end) {
  while (true) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - StoreClock::now()).count();
    if (left <= 0) return false;
    pollfd one{socket, event, 0};
    const int ready = ::poll(&one, 1, std::min<std::int64_t>(left + 1, 60'000));
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return false;
  }
}

/// Calls `some(remaining bytes)`, which sends or receives without blocking, until all is done.
template <class Some>
bool transfer(int socket, short event, std::size_t bytes, StoreClock::time_point end, const Some& some) {
  std::size_t done = 0;
  while (done < bytes) {
    const ssize_t now = some(done, bytes - done);
    if (now > 0) {
      done += now;
      if (done < bytes && StoreClock::now() >= end) return false;  // a peer that sends byte by byte
      continue;
    }
    if (now == 0) return false;
    if (errno == EINTR) continue;
    if ((errno != EAGAIN && errno != EWOULDBLOCK) || !is_ready(socket, event, end)) return false;
  }
  return true;
}

}  // namespace

bool send_all(int socket, const void* data, std::size_t bytes, StoreClock::time_point end) {
  const auto* from = static_cast<const char*>(data);
  return transfer(socket, POLLOUT, bytes, end, [&](std::size_t done, std::size_t left) {
    return ::send(socket, from + done, left, MSG_NOSIGNAL | MSG_DONTWAIT);
  });
}

bool receive_all(int socket, void* data, std::size_t bytes, StoreClock::time_point end) {
  auto* to = static_cast<char*>(data);
  return transfer(socket, POLLIN, bytes, end, [&](std::size_t done, std::size_t left) {
    return ::recv(socket, to + done, left, MSG_DONTWAIT);
  });
}

bool send_text(int socket, std::string_view text, StoreClock::time_point end) {
  const std::uint32_t size = text.size();
  return send_all(socket, &size, sizeof size, end) && send_all(socket, text.data(), text.size(), end);
}

bool receive_text(int socket, std::string& text, std::size_t longest, StoreClock::time_point end) {
  std::uint32_t size = 0;
  if (!receive_all(socket, &size, sizeof size, end) || size > longest) return false;
  text.resize(size);
  return receive_all(socket, text.data(), size, end);
}

void wait_for_request(int socket) {
  pollfd one{socket, POLLIN, 0};
  while (::poll(&one, 1, -1) < 0 && errno == EINTR) {
  }
}

bool equal_tokens(const std::string& a, const std::string& b) {
  unsigned differing = a.size() == b.size() ? 0 : 1;
  for (std::size_t i = 0; i < a.size(); ++i)
    differing |= static_cast<unsigned>(a[i] ^ (b.empty() ? '\0' : b[i % b.size()]));
  return differing == 0;
}

}  // namespace stepcast
