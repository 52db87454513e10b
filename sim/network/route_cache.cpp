#include "sim/network/route_cache.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "core/expects.hpp"

namespace stepcast {

SinglePortNodes::SinglePortNodes(const Platform& platform, const LinkBandwidths& bandwidths,
                                 const std::vector<int>& endpoints)
    : platform_(platform),
      bandwidths_(bandwidths),
      links_per_node_(Topology(platform).links_per_node()),
      single_port_(platform.nodes, false) {
  const std::set<int> used(endpoints.begin(), endpoints.end());
  std::vector<int> counts(single_port_.size(), 0);
  for (const int endpoint : used) {
    // A host uses every NIC of its node, a device only its own NIC.
    const bool one_way = endpoint < platform.devices() || platform.network.ports_per_node() == 1;
    if (endpoint != platform.storage_endpoint()) counts[platform.node_of(endpoint)] += one_way ? 1 : 2;
  }
  // A half-duplex link also carries what the other route carries, and around dead links lead several routes.
  for (std::size_t node = 0; node < counts.size(); ++node)
    single_port_[node] = counts[node] == 1 && !platform.node.half_duplex &&
                         !platform.node.half_duplex_sockets && platform.dead_links.empty();
}

void SinglePortNodes::remove_nonbinding_links(int from, int to, std::vector<int>& route) const {
  const int out = platform_.node_of(from), in = platform_.node_of(to);
  if (out == in) return;
  const auto inside = [this](int node) {
    return [first = node * links_per_node_, last = (node + 1) * links_per_node_](int link) {
      return link >= first && link < last;
    };
  };
  const auto arrival = std::find_if(route.begin(), route.end(), inside(in));
  keep_narrowest(in, arrival - route.begin(), route.size(), route);
  const auto departure = std::find_if_not(route.begin(), route.end(), inside(out));
  keep_narrowest(out, 0, departure - route.begin(), route);
}

/// Keeps only the narrowest of the links at [first, last), the first one if several are equally narrow.
void SinglePortNodes::keep_narrowest(int node, std::size_t first, std::size_t last,
                                     std::vector<int>& route) const {
  if (node < 0 || !single_port_[node] || last - first < 2) return;
  const auto begin = route.begin() + first;
  const auto end = route.begin() + last;
  const int narrowest = *std::min_element(
      begin, end, [this](int a, int b) { return bandwidths_[a].value < bandwidths_[b].value; });
  *begin = narrowest;
  route.erase(begin + 1, end);
}

namespace {

constexpr std::size_t kInitialSize = 8;

}  // namespace

RouteCache::Route RouteCache::between(int from, int to) {
  expects(from >= 0 && to >= 0, "endpoints of the platform");
  Table& table = table_of(from, to);
  const std::int32_t partner = std::max(from, to);
  if (table.entries.empty()) table.grow();
  Entry* entry = &table.entry_of(partner);
  if (entry->partner == Entry::kNone) {
    if (2 * ++table.count > table.entries.size()) {
      table.grow();
      entry = &table.entry_of(partner);
    }
    *entry = computed_route(from, to);
    entry->partner = partner;
  }
  const std::uint32_t count = entry->count();
  const int* links = count <= Entry::kInline ? entry->inline_links : links_.data() + entry->inline_links[0];
  return {entry->latency, entry->local(), {links, count}};
}

/// The table belongs to the endpoint of the smaller number, which mostly is a worker: the routes of its
/// messages are looked up together, and so are those of the replies.
RouteCache::Table& RouteCache::table_of(int from, int to) {
  const std::size_t number = 2 * static_cast<std::size_t>(std::min(from, to)) + (from < to ? 0 : 1);
  if (number >= tables_.size()) tables_.resize(number + 1);
  return tables_[number];
}

/// The entry of a partner, or the free entry where it belongs. Triangular probing visits every entry, because
/// the size is a power of two.
RouteCache::Entry& RouteCache::Table::entry_of(std::int32_t partner) {
  const std::size_t mask = entries.size() - 1;
  std::size_t at = partner;
  for (std::size_t step = 1;; at += step++) {
    Entry& tried = entries[at & mask];
    if (tried.partner == partner || tried.partner == Entry::kNone) return tried;
  }
}

void RouteCache::Table::grow() {
  const std::vector<Entry> before =
      std::exchange(entries, std::vector<Entry>(std::max(kInitialSize, 2 * entries.size())));
  for (const Entry& old : before) {
    if (old.partner != Entry::kNone) entry_of(old.partner) = old;
  }
}

RouteCache::Entry RouteCache::computed_route(int from, int to) {
  route_.clear();
  topology_.route(from, to, route_);
  Entry entry;
  entry.latency = topology_.latency_of(route_).value;
  if (nodes_ != nullptr) nodes_->remove_nonbinding_links(from, to, route_);
  const bool local = platform_.node_of(from) == platform_.node_of(to);
  entry.count_and_local = static_cast<std::uint32_t>(route_.size()) << 1U | (local ? 1U : 0U);
  if (route_.size() <= Entry::kInline) {
    std::ranges::copy(route_, entry.inline_links);
  } else {
    entry.inline_links[0] = links_.size();
    links_.insert(links_.end(), route_.begin(), route_.end());
  }
  return entry;
}

}  // namespace stepcast
