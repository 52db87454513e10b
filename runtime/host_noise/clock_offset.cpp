#include <cstring>

#include "kernels/timing/step_timer.hpp"
#include "runtime/host_noise/repeated_timing.hpp"

namespace stepcast {
namespace {

constexpr int kPings = 10;

void send_double(Transport& transport, int peer, double value) {
  float halves[2];
  std::memcpy(halves, &value, sizeof value);
  send(transport, peer, halves, 2);
}

double receive_double(Transport& transport, int peer) {
  float halves[2];
  receive(transport, peer, halves, 2);
  double value = 0;
  std::memcpy(&value, halves, sizeof value);
  return value;
}

/// Rank 0 reads its clock as soon as a question comes.
void answer(Transport& transport, int peer) {
  for (int i = 0; i < kPings; ++i) {
    receive_double(transport, peer);
    send_double(transport, peer, now().wall);
  }
}

}  // namespace

double clock_offset_to_rank_0(Transport& transport) {
  barrier(transport);
  double offset = 0, shortest = 0;
  for (int peer = 1; peer < transport.ranks(); ++peer) {
    if (transport.rank() == 0) answer(transport, peer);
    if (transport.rank() != peer) continue;
    for (int i = 0; i < kPings; ++i) {
      const double begin = now().wall;
      send_double(transport, 0, begin);
      const double there = receive_double(transport, 0), end = now().wall;
      if (i > 0 && end - begin >= shortest) continue;
      shortest = end - begin;
      offset = (begin + end) / 2 - there;
    }
  }
  return offset;
}

}  // namespace stepcast
