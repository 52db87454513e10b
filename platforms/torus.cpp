#include "platforms/torus.hpp"

#include <fmt/format.h>

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

}  // namespace stepcast
