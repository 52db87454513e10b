#include "platforms/topology.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <queue>
#include <stdexcept>

#include "core/random.hpp"

namespace stepcast {

Torus::Torus(const TorusShape& shape)
    : shape_(shape), stride_{1, shape.size[0], shape.size[0] * shape.size[1]} {
  for (int d = 0; d < 3; ++d) {
    if (shape.size[d] > 1) dimensions_.push_back(d);
  }
}

int Torus::neighbour(int router, int dimension, bool up) const {
  const int size = shape_.size[dimension], at = router / stride_[dimension] % size;
  const int next = up ? (at + 1 == size ? 0 : at + 1) : (at == 0 ? size - 1 : at - 1);
  return router + (next - at) * stride_[dimension];
}

void Torus::route(int from_port, int to_port, int first_link, std::vector<int>& links) const {
  int at = edge(from_port);
  const int to = edge(to_port), cables = 2 * dimensions_.size();
  for (std::size_t i = 0; i < dimensions_.size(); ++i) {
    const int d = dimensions_[i], size = shape_.size[d];
    const int from = at / stride_[d] % size;
    const int ahead = (to / stride_[d] % size - from + size) % size;
    const bool up = 2 * ahead == size ? from % 2 == 0 : 2 * ahead < size;
    for (int hop = up ? ahead : size - ahead; hop > 0 && ahead > 0; --hop) {
      links.push_back(first_link + at * cables + 2 * i + (up ? 0 : 1));
      at = neighbour(at, d, up);
    }
  }
}

std::pair<int, int> Torus::ends(int id) const {
  const int router = id / (2 * std::ssize(dimensions_));
  return {router, neighbour(router, dimensions_[id / 2 % dimensions_.size()], id % 2 == 0)};
}

std::string Torus::vertex_name(int vertex) const {
  const auto [x, y, z] = shape_.size;
  return fmt::format("router ({}, {}, {})", vertex % x, vertex / x % y, vertex / x / y % z);
}

std::string Torus::dotted_link_name(int id) const {
  const auto [x, y, z] = shape_.size;
  const int dimensions = dimensions_.size(), router = id / (2 * dimensions);
  return fmt::format("router{}-{}-{}.cable.{}.{}", router % x, router / x % y, router / x / y % z,
                     "xyz"[dimensions_[id / 2 % dimensions]], id % 2 == 0 ? "up" : "down");
}

namespace {

template <class... Cases>
struct Overloaded : Cases... {
  using Cases::operator()...;
};
template <class... Cases>
Overloaded(Cases...) -> Overloaded<Cases...>;

}  // namespace

Topology::Topology(const Platform& platform)
    : nodes_(platform.nodes),
      devices_per_node_(platform.devices_per_node),
      ports_(platform.network.ports_per_node()),
      inside_(platform),
      fabric_(std::visit(
          Overloaded{[&](const FatTreeShape& shape) {
                       return Fabric{FatTree(shape, platform.network.port(), nodes_, ports_)};
                     },
                     [&](const DragonflyShape& shape) { return Fabric{Dragonfly(shape)}; },
                     [&](const TorusShape& shape) { return Fabric{Torus(shape)}; },
                     [&](const SitesShape& shape) { return Fabric{Sites(shape, nodes_, ports_)}; }},
          platform.network.fabric)),
      has_storage_(platform.storage.kind != Storage::Kind::none),
      shared_storage_(platform.storage.kind == Storage::Kind::shared),
      storage_{platform.storage.bandwidth, platform.storage.latency},
      into_cluster_{platform.storage.into_cluster, Seconds{0}},
      storage_client_{platform.storage.per_node, Seconds{0}},
      first_fabric_(nodes_ * inside_.link_count()),
      dead_(platform.dead_links) {
  const auto [links, vertices] = std::visit(
      [](const auto& fabric) { return std::pair(fabric.link_count(), fabric.vertex_count()); }, fabric_);
  first_storage_ = first_fabric_ + links;
  fabric_vertices_ = vertices;
  if (into_cluster_.bandwidth.value == 0) into_cluster_.bandwidth = storage_.bandwidth;
  if (dead_.empty()) return;
  for (int id = first_fabric_; id < first_storage_; ++id) fabric_exits_[link_ends(id).first].push_back(id);
}

Topology::Terminal Topology::terminal_of(int endpoint) const {
  const int devices = nodes_ * devices_per_node_;
  if (endpoint < devices) return {endpoint / devices_per_node_, endpoint % devices_per_node_};
  return {endpoint - devices, inside_.host()};
}

int Topology::port_towards(Terminal from, Terminal to) const {
  const auto nic = [this](int device) { return device * ports_ / devices_per_node_; };
  if (from.terminal < devices_per_node_) return nic(from.terminal);
  return to.terminal < devices_per_node_ ? nic(to.terminal) : (from.node + to.node) % ports_;
}

void Topology::route(int from, int to, std::vector<int>& links) const {
  const std::size_t first = links.size();
  usual_route(from, to, links);
  const auto begin = links.begin() + first;
  if (dead_.empty() || std::none_of(begin, links.end(), [this](int id) { return is_dead(id); })) return;
  const auto around = detour(from, to);
  if (!around) throw std::invalid_argument("dead links leave no route between two endpoints");
  links.resize(first);
  links.insert(links.end(), around->begin(), around->end());
}

unsigned Topology::choices(int from, int to) const {
  const auto* dragonfly = std::get_if<Dragonfly>(&fabric_);
  const int storage = nodes_ * (devices_per_node_ + 1);
  if (dragonfly == nullptr || from == storage || to == storage) return 1;
  const Terminal a = terminal_of(from), b = terminal_of(to);
  return dragonfly->choices(a.node * ports_ + port_towards(a, b), b.node * ports_ + port_towards(b, a));
}

void Topology::route(int from, int to, unsigned choice, std::vector<int>& links) const {
  if (choice == 0) return route(from, to, links);
  const std::size_t first = links.size();
  usual_route(from, to, links, choice);
  const auto begin = links.begin() + first;
  if (std::none_of(begin, links.end(), [this](int id) { return is_dead(id); })) return;
  links.resize(first);
  route(from, to, links);
}

bool Topology::connected(int from, int to) const {
  std::vector<int> links;
  usual_route(from, to, links);
  return std::ranges::none_of(links, [this](int id) { return is_dead(id); }) || detour(from, to);
}

bool Topology::is_dead(int link) const {
  return std::ranges::binary_search(dead_, link);
}

/// The vertex of an endpoint; of a local disk, that in the node of the other endpoint.
int Topology::terminal_vertex(int endpoint, int other) const {
  const bool disk = endpoint == nodes_ * (devices_per_node_ + 1) && !shared_storage_;
  return disk ? node_vertex(terminal_of(other).node, inside_.disk()) : endpoint_vertex(endpoint);
}

/// The live links out of a vertex that a route between two endpoints may take: of the fabric, of the storage,
/// and of the nodes of both.
std::vector<int> Topology::exits(int vertex, int from, int to) const {
  std::vector<int> links;
  const auto add = [&](int first, int count) {
    for (int id = first; id < first + count; ++id) {
      if (link_ends(id).first == vertex) links.push_back(id);
    }
  };
  const int storage = nodes_ * (devices_per_node_ + 1), inside = inside_.link_count();
  const bool one_node = from == storage || to == storage || terminal_of(from).node == terminal_of(to).node;
  if (from != storage) add(terminal_of(from).node * inside, inside);
  if (from == storage || !one_node) add(terminal_of(to).node * inside, inside);
  if (const auto found = fabric_exits_.find(vertex); found != fabric_exits_.end())
    links.insert(links.end(), found->second.begin(), found->second.end());
  if (shared_storage_ && (from == storage || to == storage)) {
    add(first_storage_, kStorageLinks);
    add(first_storage_ + kStorageLinks + 2 * terminal_of(from == storage ? to : from).node, 2);
  }
  std::erase_if(links, [this](int id) { return is_dead(id); });
  return links;
}

/// Dijkstra's shortest path over live links.
std::optional<std::vector<int>> Topology::detour(int from, int to) const {
  constexpr Bytes kProbe{1 << 20};
  constexpr Seconds kPerHop{1e-12};
  struct Reached {
    double cost;
    int entry;  ///< the link that leads to it; -1: none
  };
  const int start = terminal_vertex(from, to), end = terminal_vertex(to, from);
  const auto rank = [&](int id) { return mixed_hash(mixed_hash(from, to), id); };
  std::unordered_map<int, Reached> reached{{start, {0, -1}}};
  std::priority_queue<std::pair<double, int>, std::vector<std::pair<double, int>>, std::greater<>> waiting;
  for (waiting.push({0, start}); !waiting.empty();) {
    const auto [cost, vertex] = waiting.top();
    waiting.pop();
    if (vertex == end) break;
    if (cost > reached.at(vertex).cost || (vertex != start && !relays(vertex))) continue;
    for (const int id : exits(vertex, from, to)) {
      const Link& one = link(id);
      const double arrival = cost + (one.latency + kProbe / one.bandwidth + kPerHop).value;
      const int next = link_ends(id).second;
      const auto [known, is_new] = reached.try_emplace(next, Reached{arrival, id});
      if (is_new || arrival < known->second.cost) {
        waiting.push({arrival, next});
        known->second = {arrival, id};
      } else if (arrival == known->second.cost && rank(id) < rank(known->second.entry)) {
        known->second.entry = id;
      }
    }
  }
  if (!reached.contains(end)) return std::nullopt;
  std::vector<int> links;
  for (int id = reached.at(end).entry; id >= 0; id = reached.at(link_ends(id).first).entry)
    links.push_back(id);
  std::ranges::reverse(links);
  for (int& id : links) id = shared_id(id);
  return links;
}

/// Whether routes may lead through a vertex: not through devices, hosts and disks, unless devices relay.
bool Topology::relays(int vertex) const {
  const int inside = inside_.vertex_count();
  return vertex >= nodes_ * inside || inside_.relays(vertex % inside);
}

/// The id with which routes name a link.
int Topology::shared_id(int id) const {
  const int inside = inside_.link_count();
  return id < first_fabric_ ? id / inside * inside + inside_.shared_id(id % inside) : id;
}

void Topology::usual_route(int from, int to, std::vector<int>& links, unsigned choice) const {
  const int storage = nodes_ * (devices_per_node_ + 1);
  if (from == to) return;
  if (from == storage || to == storage) return route_storage(from, to, links);
  const Terminal a = terminal_of(from), b = terminal_of(to);
  const int inside = inside_.link_count();
  if (a.node == b.node) return inside_.route(a.terminal, b.terminal, a.node * inside, links);
  const int out = port_towards(a, b), in = port_towards(b, a);
  inside_.route(a.terminal, inside_.nic(out), a.node * inside, links);
  const int from_port = a.node * ports_ + out, to_port = b.node * ports_ + in;
  if (choice > 0) {
    std::get<Dragonfly>(fabric_).route(from_port, to_port, first_fabric_, links, choice);
  } else {
    std::visit([&](const auto& f) { f.route(from_port, to_port, first_fabric_, links); }, fabric_);
  }
  inside_.route(inside_.nic(in), b.terminal, b.node * inside, links);
}

void Topology::route_storage(int from, int to, std::vector<int>& links) const {
  if (!has_storage_) throw std::invalid_argument("this platform has no storage");
  const bool reads = from == nodes_ * (devices_per_node_ + 1);
  const Terminal at = terminal_of(reads ? to : from);
  const int first = at.node * inside_.link_count();
  const int storage_terminal = shared_storage_ ? inside_.nic(0) : inside_.disk();
  const int client = first_storage_ + kStorageLinks + 2 * at.node;
  if (reads) {
    if (shared_storage_) links.insert(links.end(), {first_storage_, first_storage_ + 2, client});
    inside_.route(storage_terminal, at.terminal, first, links);
  } else {
    inside_.route(at.terminal, storage_terminal, first, links);
    if (shared_storage_) links.insert(links.end(), {client + 1, first_storage_ + 3, first_storage_ + 1});
  }
}

Seconds Topology::route_latency(int from, int to) const {
  std::vector<int> links;
  links.reserve(16);
  route(from, to, links);
  return latency_of(links);
}

Seconds Topology::latency_of(const std::vector<int>& route) const {
  Seconds sum;
  for (const int id : route) sum += link(id).latency;
  return sum;
}

const Link& Topology::link(int id) const {
  if (id < first_fabric_) return inside_.link(id % inside_.link_count());
  if (id < first_storage_) {
    return std::visit([&](const auto& f) -> const Link& { return f.link(id - first_fabric_); }, fabric_);
  }
  if (id >= first_storage_ + kStorageLinks) return storage_client_;
  return id < first_storage_ + 2 ? storage_ : into_cluster_;
}

int Topology::node_vertex(int node, int vertex) const {
  const int port = vertex - inside_.nic(0);
  if (port < 0 || port >= ports_) return node * inside_.vertex_count() + vertex;
  return nodes_ * inside_.vertex_count() +
         std::visit([&](const auto& f) { return f.edge(node * ports_ + port); }, fabric_);
}

int Topology::endpoint_vertex(int endpoint) const {
  if (endpoint == nodes_ * (devices_per_node_ + 1)) return nodes_ * inside_.vertex_count() + fabric_vertices_;
  const Terminal at = terminal_of(endpoint);
  return node_vertex(at.node, at.terminal);
}

std::pair<int, int> Topology::link_ends(int id) const {
  const int first_vertex = nodes_ * inside_.vertex_count(), servers = first_vertex + fabric_vertices_;
  if (id < first_fabric_) {
    const auto [a, b] = inside_.ends(id % inside_.link_count());
    const int node = id / inside_.link_count();
    return {node_vertex(node, a), node_vertex(node, b)};
  }
  if (id < first_storage_) {
    const auto [a, b] = std::visit([&](const auto& f) { return f.ends(id - first_fabric_); }, fabric_);
    return {first_vertex + a, first_vertex + b};
  }
  const int index = id - first_storage_;
  const int near = index < 2 ? servers : index < kStorageLinks ? servers + 1 : servers + 2;
  const int far = index < kStorageLinks ? near + 1 : node_vertex((index - kStorageLinks) / 2, inside_.nic(0));
  return index % 2 == 0 ? std::pair{near, far} : std::pair{far, near};
}

std::string Topology::vertex_name(int vertex) const {
  return std::visit([&](const auto& f) { return f.vertex_name(vertex - nodes_ * inside_.vertex_count()); },
                    fabric_);
}

std::string Topology::link_kind(int id) const {
  if (id < first_fabric_) return inside_.link_kind(id % inside_.link_count());
  if (id < first_storage_) {
    return std::visit([&](const auto& f) { return f.link_kind(id - first_fabric_); }, fabric_);
  }
  const int index = id - first_storage_;
  return index < 2 ? "storage servers" : index < kStorageLinks ? "storage gateway" : "storage client";
}

std::string Topology::link_name(int id) const {
  if (id < first_fabric_) {
    return fmt::format("node {} {}", id / inside_.link_count(), inside_.link_name(id % inside_.link_count()));
  }
  if (id < first_storage_) {
    const auto [a, b] = link_ends(id);
    return vertex_name(a) + " -> " + vertex_name(b);
  }
  const int index = id - first_storage_;
  const char* way = index % 2 == 0 ? "out" : "in";
  if (index < 2) return fmt::format("storage {}", way);
  if (index < kStorageLinks) return fmt::format("storage gateway {}", way);
  return fmt::format("storage client {} {}", (index - kStorageLinks) / 2, index % 2 == 0 ? "read" : "write");
}

std::string Topology::dotted_link_name(int id) const {
  const int inside = inside_.link_count();
  if (id < first_fabric_) return fmt::format("node{}.{}", id / inside, inside_.dotted_link_name(id % inside));
  if (id < first_storage_)
    return std::visit([&](const auto& f) { return f.dotted_link_name(id - first_fabric_); }, fabric_);
  const int index = id - first_storage_, client = index - kStorageLinks;
  const char* way = index % 2 == 0 ? "out" : "in";
  if (index < 2) return fmt::format("storage.{}", way);
  if (client < 0) return fmt::format("storage.gateway.{}", way);
  return fmt::format("node{}.storage.{}", client / 2, client % 2 == 0 ? "read" : "write");
}

std::string Topology::endpoint_name(int endpoint) const {
  if (endpoint == nodes_ * (devices_per_node_ + 1)) return "storage";
  const Terminal at = terminal_of(endpoint);
  if (at.terminal == inside_.host()) return fmt::format("node{}.cpu", at.node);
  return fmt::format("node{}.device{}", at.node, at.terminal);
}

}  // namespace stepcast
