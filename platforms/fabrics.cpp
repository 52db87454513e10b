#include "platforms/fabrics.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>

namespace stepcast {

FatTree::FatTree(const FatTreeShape& shape, Link port, int nodes, int ports_per_node)
    : ports_per_node_(ports_per_node),
      nodes_per_leaf_(shape.rails && !shape.levels.empty() ? shape.levels[0].down : 0) {
  const int positions = position(nodes * ports_per_node - 1) + 1;
  Level level;
  BytesPerSecond bandwidth = port.bandwidth;
  for (const FatTreeLevel& given : shape.levels) {
    level.span *= given.down;
    level.ups = given.up;
    bandwidth = (given.down / (given.taper * given.up)) * bandwidth;
    level.up = {bandwidth, given.latency};
    levels_.push_back(level);
    const int switches = (positions + level.span - 1) / level.span * level.width;
    level.first_switch += switches;
    level.first_link += 2 * switches * level.ups;
    level.width *= level.ups;
  }
  level.span = positions;
  level.ups = 0;
  levels_.push_back(level);
}

int FatTree::position(int port) const {
  if (nodes_per_leaf_ == 0) return port;
  const int node = port / ports_per_node_, rail = port % ports_per_node_;
  return (node / nodes_per_leaf_ * ports_per_node_ + rail) * nodes_per_leaf_ + node % nodes_per_leaf_;
}

int FatTree::edge(int port) const {
  return position(port) / levels_[0].span * levels_[0].width;
}

void FatTree::route(int from_port, int to_port, int first_link, std::vector<int>& links) const {
  const int a = position(from_port), b = position(to_port);
  std::array<int, 8> down{};  // docs/reference/platforms.md: at most 7 levels below the top
  int height = 0, plane = 0;  // `plane`: index of a switch among the `width` switches of its group
  for (; a / levels_[height].span != b / levels_[height].span; ++height) {
    const Level& level = levels_[height];
    const int cable = b / level.width % level.ups;
    const int group_a = a / level.span, group_b = b / level.span;
    links.push_back(first_link + level.first_link +
                    2 * ((group_a * level.width + plane) * level.ups + cable));
    down[height] =
        first_link + level.first_link + 2 * ((group_b * level.width + plane) * level.ups + cable) + 1;
    plane = plane * level.ups + cable;
  }
  while (height > 0) links.push_back(down[--height]);
}

int FatTree::level_of_link(int id) const {
  int level = 0;
  while (id >= levels_[level + 1].first_link) ++level;
  return level;
}

std::pair<int, int> FatTree::ends(int id) const {
  const int l = level_of_link(id);
  const Level& below = levels_[l];
  const Level& above = levels_[l + 1];
  const int cable = (id - below.first_link) / 2;
  const int group = cable / below.ups / below.width, plane = cable / below.ups % below.width;
  const int low = below.first_switch + group * below.width + plane;
  const int high = above.first_switch + group * below.span / above.span * above.width + plane * below.ups +
                   cable % below.ups;
  return (id - below.first_link) % 2 == 0 ? std::pair{low, high} : std::pair{high, low};
}

std::string FatTree::link_kind(int id) const {
  const int level = level_of_link(id);
  const auto name = [this](int l) {
    return l == 0 ? "leaf" : l + 1 == std::ssize(levels_) ? "spine" : fmt::format("level-{} switch", l + 1);
  };
  return name(level) + " - " + name(level + 1);
}

std::string FatTree::vertex_name(int vertex) const {
  if (levels_.size() == 1) return "switch";
  std::size_t level = levels_.size() - 1;
  while (vertex < levels_[level].first_switch) --level;
  const int index = vertex - levels_[level].first_switch;
  if (level == 0) return fmt::format("leaf {}", index);
  if (level + 1 == levels_.size()) return fmt::format("spine {}", index);
  return fmt::format("level-{} switch {}", level + 1, index);
}

std::string FatTree::dotted_link_name(int id) const {
  const int level = level_of_link(id), cable = (id - levels_[level].first_link) / 2, ups = levels_[level].ups;
  const std::string name = level == 0 ? "leaf" : fmt::format("level{}-switch", level + 1);
  const char* way = (id - levels_[level].first_link) % 2 == 0 ? "up" : "down";
  return fmt::format("{}{}.cable.{}.{}", name, cable / ups, cable % ups, way);
}

namespace {

/// Symmetric hash of two ports, so that both directions take the same cable. Multipliers: Knuth's golden
/// ratio and the finalizer of MurmurHash3 (public domain).
unsigned hash_pair(int a, int b) {
  std::uint32_t h = std::min(a, b) * 0x9E3779B1U + std::max(a, b);
  h = (h ^ (h >> 16)) * 0x85EBCA6BU;
  h = (h ^ (h >> 13)) * 0xC2B2AE35U;
  return h ^ (h >> 16);
}

/// Index of `other` in the list of all members but `self`.
int index_without(int self, int other) {
  return other < self ? other : other - 1;
}

}  // namespace

Dragonfly::Dragonfly(const DragonflyShape& shape)
    : shape_(shape),
      slots_(shape.routers_per_chassis),
      chassis_(shape.chassis_per_group),
      routers_(slots_ * chassis_),
      group_links_(chassis_ - 1),
      global_per_group_((shape.groups - 1) * shape.cables_per_group_pair),
      first_group_link_(shape.groups * routers_ * (slots_ - 1)),
      first_global_(first_group_link_ + shape.groups * routers_ * group_links_) {}

const Link& Dragonfly::link(int id) const {
  if (id < first_group_link_) return shape_.chassis_cable;
  return id < first_global_ ? shape_.group_cable : shape_.global_cable;
}

unsigned Dragonfly::choices(int from_port, int to_port) const {
  if (shape_.routing != DragonflyShape::Routing::adaptive) return 1;
  if (edge(from_port) / routers_ == edge(to_port) / routers_) return 1;
  return kMinimalChoices + (shape_.groups > 2 ? kValiantChoices : 0);
}

void Dragonfly::route(int from_port, int to_port, int first_link, std::vector<int>& links,
                      unsigned choice) const {
  int at = edge(from_port);
  const int to = edge(to_port);
  const int from_group = at / routers_, to_group = to / routers_;
  if (from_group != to_group) {
    const bool valiant = choice >= kMinimalChoices || shape_.routing == DragonflyShape::Routing::valiant;
    choice += hash_pair(from_port, to_port);
    if (valiant && shape_.groups > 2) {
      int middle = choice % (shape_.groups - 2);
      choice /= shape_.groups - 2;
      const auto [low, high] = std::minmax(from_group, to_group);
      if (middle >= low) ++middle;
      if (middle >= high) ++middle;
      at = cross_to_group(at, middle, choice, first_link, links);
    }
    at = cross_to_group(at, to_group, choice, first_link, links);
  }
  route_in_group(at, to, first_link, links);
}

int Dragonfly::cross_to_group(int from, int group, unsigned choice, int first_link,
                              std::vector<int>& links) const {
  const int here = from / routers_;
  const int cable = choice % shape_.cables_per_group_pair;
  route_in_group(from, gateway(here, group, cable), first_link, links);
  links.push_back(first_link + first_global_ + here * global_per_group_ +
                  index_without(here, group) * shape_.cables_per_group_pair + cable);
  return gateway(group, here, cable);
}

int Dragonfly::gateway(int group, int other, int cable) const {
  const int turn = (other - group - 1 + shape_.groups) % shape_.groups;
  return group * routers_ + (turn * shape_.cables_per_group_pair + cable) % routers_;
}

void Dragonfly::route_in_group(int from, int to, int first_link, std::vector<int>& links) const {
  const int from_slot = from % slots_, to_slot = to % slots_;
  if (from_slot != to_slot) {
    links.push_back(first_link + from * (slots_ - 1) + index_without(from_slot, to_slot));
    from += to_slot - from_slot;
  }
  if (from != to) {
    const int from_chassis = from / slots_ % chassis_, to_chassis = to / slots_ % chassis_;
    links.push_back(first_link + first_group_link_ + from * group_links_ +
                    index_without(from_chassis, to_chassis));
  }
}

std::pair<int, int> Dragonfly::ends(int id) const {
  const auto other = [](int self, int rank) { return rank < self ? rank : rank + 1; };
  if (id < first_group_link_) {
    const int from = id / (slots_ - 1), slot = from % slots_;
    return {from, from + other(slot, id % (slots_ - 1)) - slot};
  }
  if (id < first_global_) {
    const int from = (id - first_group_link_) / group_links_, chassis = from / slots_ % chassis_;
    return {from, from + (other(chassis, (id - first_group_link_) % group_links_) - chassis) * slots_};
  }
  const int group = (id - first_global_) / global_per_group_, rest = (id - first_global_) % global_per_group_;
  const int to = other(group, rest / shape_.cables_per_group_pair),
            cable = rest % shape_.cables_per_group_pair;
  return {gateway(group, to, cable), gateway(to, group, cable)};
}

std::string Dragonfly::dotted_link_name(int id) const {
  if (id >= first_global_) {
    const int index = id - first_global_;
    return fmt::format("group{}.cable.{}", index / global_per_group_, index % global_per_group_);
  }
  const auto [from, to] = ends(id);
  const auto chassis = [this](int router) { return router / slots_ % chassis_; };
  if (id < first_group_link_) {
    return fmt::format("group{}.chassis{}.cable.{}-{}", from / routers_, chassis(from), from % slots_,
                       to % slots_);
  }
  return fmt::format("group{}.slot{}.cable.{}-{}", from / routers_, from % slots_, chassis(from),
                     chassis(to));
}

std::string Dragonfly::vertex_name(int vertex) const {
  return fmt::format("group {} chassis {} router {}", vertex / routers_, vertex / slots_ % chassis_,
                     vertex % slots_);
}

}  // namespace stepcast
