#include "sim/paths.hpp"

#include <algorithm>
#include <utility>

namespace stepcast {
namespace {

constexpr std::size_t kFirstSize = 8;

}  // namespace

Paths::Path Paths::between(int from, int to) {
  Table& table = table_of(from, to);
  const std::int32_t partner = std::max(from, to);
  if (table.kept.empty()) table.grow();
  Kept* kept = &table.place_of(partner);
  if (kept->partner == Kept::kNone) {
    if (2 * ++table.count > table.kept.size()) {
      table.grow();
      kept = &table.place_of(partner);
    }
    *kept = worked_out(from, to);
    kept->partner = partner;
  }
  const std::uint32_t count = kept->count();
  const int* links = count <= Kept::kNear ? kept->near : links_.data() + kept->near[0];
  return {kept->latency, kept->local(), {links, count}};
}

/// Of the smaller endpoint (mostly a worker): its messages are asked for together, and so are their answers.
Paths::Table& Paths::table_of(int from, int to) {
  const std::size_t number = 2 * static_cast<std::size_t>(std::min(from, to)) + (from < to ? 0 : 1);
  if (number >= tables_.size()) tables_.resize(number + 1);
  return tables_[number];
}

/// Where a partner lies, or would. Every place is tried.
Paths::Kept& Paths::Table::place_of(std::int32_t partner) {
  const std::size_t mask = kept.size() - 1;
  std::size_t at = static_cast<std::size_t>(partner);
  for (std::size_t step = 1;; at += step++) {
    Kept& tried = kept[at & mask];
    if (tried.partner == partner || tried.partner == Kept::kNone) return tried;
  }
}

void Paths::Table::grow() {
  const std::vector<Kept> before =
      std::exchange(kept, std::vector<Kept>(std::max(kFirstSize, 2 * kept.size())));
  for (const Kept& old : before) {
    if (old.partner != Kept::kNone) place_of(old.partner) = old;
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
