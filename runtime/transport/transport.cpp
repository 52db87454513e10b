#include "runtime/transport/transport.hpp"

#include <algorithm>
#include <cstring>

namespace stepcast {

void send(Transport& transport, int peer, const float* data, std::int64_t count) {
  while (count > 0) {
    const std::int64_t sent = transport.send_some(peer, data, count);
    if (sent == 0) transport.wait({peer}, {});
    data += sent;
    count -= sent;
  }
}

void receive(Transport& transport, int peer, float* target, std::int64_t count) {
  while (count > 0) {
    const std::int64_t got = transport.receive_some(peer, target, count, Arrival::replace);
    if (got == 0) transport.wait({}, {peer});
    target += got;
    count -= got;
  }
}

void barrier(Transport& transport) {
  const int ranks = transport.ranks();
  for (int distance = 1; distance < ranks; distance *= 2) {
    float token = 0;
    send(transport, (transport.rank() + distance) % ranks, &token, 1);
    receive(transport, (transport.rank() - distance + ranks) % ranks, &token, 1);
  }
}

namespace {

/// The bytes of each double as two floats, because a Transport carries floats. Nobody computes with them.
std::vector<float> packed(const std::vector<double>& values) {
  std::vector<float> floats(2 * values.size());
  std::memcpy(floats.data(), values.data(), sizeof(double) * values.size());
  return floats;
}

}  // namespace

std::vector<std::vector<double>> gather_on_rank_0(Transport& transport, const std::vector<double>& own) {
  if (transport.rank() != 0) {
    const auto count = static_cast<float>(own.size());
    const std::vector<float> floats = packed(own);
    send(transport, 0, &count, 1);
    send(transport, 0, floats.data(), static_cast<std::int64_t>(floats.size()));
    return {};
  }
  std::vector<std::vector<double>> all{own};
  for (int peer = 1; peer < transport.ranks(); ++peer) {
    float count = 0;
    receive(transport, peer, &count, 1);
    std::vector<float> floats(2 * static_cast<std::size_t>(count));
    receive(transport, peer, floats.data(), static_cast<std::int64_t>(floats.size()));
    all.emplace_back(static_cast<std::size_t>(count));
    if (count > 0) std::memcpy(all.back().data(), floats.data(), sizeof(float) * floats.size());
  }
  return all;
}

/// The bytes of a text as doubles, with their number before them.
std::vector<std::string> gather_texts_on_rank_0(Transport& transport, const std::string& own) {
  std::vector<double> packed_text(1 + (own.size() + sizeof(double) - 1) / sizeof(double), 0);
  packed_text[0] = static_cast<double>(own.size());
  std::memcpy(packed_text.data() + 1, own.data(), own.size());
  std::vector<std::string> texts;
  for (const std::vector<double>& rank : gather_on_rank_0(transport, packed_text)) {
    texts.emplace_back(static_cast<std::size_t>(rank.at(0)), '\0');
    std::memcpy(texts.back().data(), rank.data() + 1, texts.back().size());
  }
  return texts;
}

double broadcast_from_rank_0(Transport& transport, double value) {
  auto shared = static_cast<float>(value);
  for (int peer = 1; transport.rank() == 0 && peer < transport.ranks(); ++peer)
    send(transport, peer, &shared, 1);
  if (transport.rank() != 0) receive(transport, 0, &shared, 1);
  return shared;
}

double max_over_ranks(Transport& transport, double own) {
  double greatest = own;
  for (const std::vector<double>& rank : gather_on_rank_0(transport, {own}))
    greatest = std::max(greatest, rank.at(0));
  return broadcast_from_rank_0(transport, greatest);
}

}  // namespace stepcast
