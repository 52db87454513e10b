#include "sim/paths.hpp"

namespace stepcast {

Paths::Path Paths::between(int from, int to) {
  const std::uint64_t pair = static_cast<std::uint64_t>(from) << 32U | static_cast<std::uint32_t>(to);
  const auto [found, is_new] = known_.try_emplace(pair);
  if (is_new) found->second = worked_out(from, to);
  const Kept& kept = found->second;
  return {kept.latency, kept.local, {links_.data() + kept.first, kept.count}};
}

Paths::Kept Paths::worked_out(int from, int to) {
  route_.clear();
  topology_.route(from, to, route_);
  const double latency = topology_.latency_of(route_).value;
  if (nodes_ != nullptr) nodes_->shorten(from, to, route_);
  const Kept kept{latency, static_cast<std::uint32_t>(links_.size()),
                  static_cast<std::uint16_t>(route_.size()),
                  platform_.node_of(from) == platform_.node_of(to)};
  links_.insert(links_.end(), route_.begin(), route_.end());
  return kept;
}

}  // namespace stepcast
