#pragma once

#include <string>
#include <utility>
#include <vector>

#include "platforms/platform.hpp"

namespace stepcast {

/// Sites of equally many nodes, each one switch without blocking; every two sites are joined by one long
/// link.
class Sites {
 public:
  Sites(const SitesShape& shape, int nodes, int ports_per_node)
      : shape_(shape), ports_((nodes + shape.count - 1) / shape.count * ports_per_node) {}

  int link_count() const { return shape_.count * (shape_.count - 1); }
  int vertex_count() const { return shape_.count; }
  const Link& link(int) const { return shape_.wan; }
  int edge(int port) const { return port / ports_; }
  std::pair<int, int> ends(int id) const {
    const int from = id / (shape_.count - 1), rank = id % (shape_.count - 1);
    return {from, rank < from ? rank : rank + 1};
  }
  std::string link_kind(int) const { return "long link"; }
  std::string vertex_name(int vertex) const { return "site " + std::to_string(vertex); }
  /// Appends the link between the sites of two ports, if they differ, plus `first_link`.
  void route(int from_port, int to_port, int first_link, std::vector<int>& links) const {
    const int from = edge(from_port), to = edge(to_port);
    if (from != to) links.push_back(first_link + from * (shape_.count - 1) + (to < from ? to : to - 1));
  }

 private:
  SitesShape shape_;
  int ports_;  ///< of one site
};

}  // namespace stepcast
