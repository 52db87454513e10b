#include "sim/paths.hpp"

#include <algorithm>
#include <utility>

namespace stepcast {
namespace {

constexpr std::size_t kFirstSize = 64;

/// Bits of a number all over another one (Fibonacci hashing).
std::size_t spread(std::uint64_t number) {
  return (number * 0x9e3779b97f4a7c15U) >> 24U;
}

}  // namespace

Paths::Path Paths::between(int from, int to) {
  const std::uint64_t pair = static_cast<std::uint64_t>(from) << 32U | static_cast<std::uint32_t>(to);
  if (known_.empty()) grow();
  Kept* kept = &place_of(pair);
  if (kept->pair == Kept::kNone) {
    if (2 * ++count_ > known_.size()) {
      grow();
      kept = &place_of(pair);
    }
    *kept = worked_out(from, to);
    kept->pair = pair;
  }
  const std::uint32_t count = kept->count();
  const int* links = count <= Kept::kNear ? kept->near : links_.data() + kept->near[0];
  return {kept->latency, kept->local(), {links, count}};
}

/// Where a pair lies, or would. All that one endpoint (of two the first of the platform: mostly a worker)
/// exchanges with others lies side by side, as its messages go to one after the other and are answered
/// together; where others are in the way a pair goes far off, so that no long runs come about. Every place is
/// tried.
Paths::Kept& Paths::place_of(std::uint64_t pair) {
  const std::size_t mask = known_.size() - 1;
  const std::uint64_t from = pair >> 32U, to = pair & 0xffffffffU;
  std::size_t at = spread(std::min(from, to)) + 2 * std::max(from, to) + (from < to ? 0 : 1);
  for (std::size_t step = 0;; ++step) {
    Kept& kept = known_[at & mask];
    if (kept.pair == pair || kept.pair == Kept::kNone) return kept;
    at = step == 0 ? spread(pair) : at + step;
  }
}

void Paths::grow() {
  const std::vector<Kept> before =
      std::exchange(known_, std::vector<Kept>(std::max(kFirstSize, 2 * known_.size())));
  for (const Kept& kept : before) {
    if (kept.pair != Kept::kNone) place_of(kept.pair) = kept;
  }
}

Paths::Kept Paths::worked_out(int from, int to) {
  route_.clear();
  topology_.route(from, to, route_);
  Kept kept;
  kept.latency = topology_.latency_of(route_).value;
  if (nodes_ != nullptr) nodes_->shorten(from, to, route_);
  const bool local = platform_.node_of(from) == platform_.node_of(to);
  kept.count_and_local = static_cast<std::uint32_t>(route_.size()) << 1U | (local ? 1U : 0U);
  if (route_.size() <= Kept::kNear) {
    std::ranges::copy(route_, kept.near);
  } else {
    kept.near[0] = static_cast<std::int32_t>(links_.size());
    links_.insert(links_.end(), route_.begin(), route_.end());
  }
  return kept;
}

}  // namespace stepcast
