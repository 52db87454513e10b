#include "runtime/transport/transport.hpp"

#include <algorithm>
#include <cstring>

namespace stepcast {

void send(Transport& transport, RankId peer, const float* data, std::int64_t count) {
  while (count > 0) {
    const std::int64_t sent = transport.send_some(peer, data, count);
    if (sent == 0) transport.wait({peer}, {});
    data += sent;
    count -= sent;
  }
}

void receive(Transport& transport, RankId peer, float* target, std::int64_t count) {
  while (count > 0) {
    const std::int64_t got = transport.receive_some(peer, target, count, OnReceive::copy);
    if (got == 0) transport.wait({}, {peer});
    target += got;
    count -= got;
  }
}

void barrier(Transport& transport) {
  std::vector<RankId> all;
  for (int rank = 0; rank < transport.ranks(); ++rank) all.emplace_back(rank);
  barrier(transport, all);
}

void barrier(Transport& transport, const std::vector<RankId>& group) {
  const int ranks = group.size(), place = std::ranges::find(group, transport.rank()) - group.begin();
  for (int distance = 1; distance < ranks; distance *= 2) {
    float token = 0;
    send(transport, group[(place + distance) % ranks], &token, 1);
    receive(transport, group[(place - distance + ranks) % ranks], &token, 1);
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
  if (!transport.is_rank_0()) {
    const float count = own.size();
    const std::vector<float> floats = packed(own);
    send(transport, RankId{0}, &count, 1);
    send(transport, RankId{0}, floats.data(), floats.size());
    return {};
  }
  std::vector<std::vector<double>> all{own};
  for (int peer = 1; peer < transport.ranks(); ++peer) {
    float count = 0;
    receive(transport, RankId(peer), &count, 1);
    std::vector<float> floats(2 * static_cast<std::size_t>(count));
    receive(transport, RankId(peer), floats.data(), floats.size());
    all.emplace_back(count);
    if (count > 0) std::memcpy(all.back().data(), floats.data(), sizeof(float) * floats.size());
  }
  return all;
}

/// The bytes of a text as doubles, with their number before them.
std::vector<std::string> gather_texts_on_rank_0(Transport& transport, const std::string& own) {
  std::vector<double> packed_text(1 + (own.size() + sizeof(double) - 1) / sizeof(double), 0);
  packed_text[0] = own.size();
  std::memcpy(packed_text.data() + 1, own.data(), own.size());
  std::vector<std::string> texts;
  for (const std::vector<double>& rank : gather_on_rank_0(transport, packed_text)) {
    texts.emplace_back(rank.at(0), '\0');
    std::memcpy(texts.back().data(), rank.data() + 1, texts.back().size());
  }
  return texts;
}

double broadcast_from_rank_0(Transport& transport, double value) {
  float shared = value;
  for (int peer = 1; transport.is_rank_0() && peer < transport.ranks(); ++peer)
    send(transport, RankId(peer), &shared, 1);
  if (!transport.is_rank_0()) receive(transport, RankId{0}, &shared, 1);
  return shared;
}

double max_over_ranks(Transport& transport, double own) {
  double greatest = own;
  for (const std::vector<double>& rank : gather_on_rank_0(transport, {own}))
    greatest = std::max(greatest, rank.at(0));
  return broadcast_from_rank_0(transport, greatest);
}

}  // namespace stepcast
