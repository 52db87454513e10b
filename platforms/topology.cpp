#include "platforms/topology.hpp"

#include <fmt/format.h>

#include <stdexcept>

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
  const int to = edge(to_port), cables = 2 * static_cast<int>(dimensions_.size());
  for (std::size_t i = 0; i < dimensions_.size(); ++i) {
    const int d = dimensions_[i], size = shape_.size[d];
    const int from = at / stride_[d] % size;
    const int ahead = (to / stride_[d] % size - from + size) % size;
    const bool up = 2 * ahead == size ? from % 2 == 0 : 2 * ahead < size;
    for (int hop = up ? ahead : size - ahead; hop > 0 && ahead > 0; --hop) {
      links.push_back(first_link + at * cables + 2 * static_cast<int>(i) + (up ? 0 : 1));
      at = neighbour(at, d, up);
    }
  }
}

std::pair<int, int> Torus::ends(int id) const {
  const int router = id / (2 * static_cast<int>(dimensions_.size()));
  return {router, neighbour(router, dimensions_[id / 2 % dimensions_.size()], id % 2 == 0)};
}

std::string Torus::vertex_name(int vertex) const {
  const auto [x, y, z] = shape_.size;
  return fmt::format("router ({}, {}, {})", vertex % x, vertex / x % y, vertex / x / y % z);
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
      first_fabric_(nodes_ * inside_.link_count()) {
  const auto [links, vertices] = std::visit(
      [](const auto& fabric) { return std::pair(fabric.link_count(), fabric.vertex_count()); }, fabric_);
  first_storage_ = first_fabric_ + links;
  fabric_vertices_ = vertices;
  if (into_cluster_.bandwidth.value == 0) into_cluster_.bandwidth = storage_.bandwidth;
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
  const int storage = nodes_ * (devices_per_node_ + 1);
  if (from == to) return;
  if (from == storage || to == storage) return route_storage(from, to, links);
  const Terminal a = terminal_of(from), b = terminal_of(to);
  const int inside = inside_.link_count();
  if (a.node == b.node) return inside_.route(a.terminal, b.terminal, a.node * inside, links);
  const int out = port_towards(a, b), in = port_towards(b, a);
  inside_.route(a.terminal, inside_.nic(out), a.node * inside, links);
  std::visit(
      [&](const auto& f) { f.route(a.node * ports_ + out, b.node * ports_ + in, first_fabric_, links); },
      fabric_);
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

}  // namespace stepcast
