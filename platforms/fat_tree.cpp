#include "platforms/fat_tree.hpp"

#include <fmt/format.h>

#include <array>

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
    return l == 0                                      ? "leaf"
           : l + 1 == static_cast<int>(levels_.size()) ? "spine"
                                                       : fmt::format("level-{} switch", l + 1);
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

}  // namespace stepcast
