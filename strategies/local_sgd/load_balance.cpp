#include "strategies/local_sgd/load_balance.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>

namespace stepcast {

std::vector<int> balanced_shares(const std::vector<double>& seconds, int total) {
  const auto workers = seconds.size();
  if (workers == 0 || total < static_cast<int>(workers)) {
    throw std::invalid_argument("balanced_shares: fewer mini-batches than workers");
  }
  double speed = 0;
  for (const double one : seconds) {
    if (!(one > 0)) throw std::invalid_argument("balanced_shares: seconds must be > 0");
    speed += 1 / one;
  }
  const double free = total - static_cast<double>(workers);  // without the first of each worker
  std::vector<int> shares(workers, 1);
  std::vector<double> rest(workers);
  for (std::size_t i = 0; i < workers; ++i) {
    // The share in proportion to speed, without the first mini-batch of each worker.
    const double share = std::max(0.0, total / seconds[i] / speed - 1);
    rest[i] = share;
  }
  const double sum = std::accumulate(rest.begin(), rest.end(), 0.0);
  int left = static_cast<int>(free);
  for (std::size_t i = 0; i < workers; ++i) {
    const double share = sum > 0 ? rest[i] / sum * free : 0;
    shares[i] += static_cast<int>(share);
    left -= static_cast<int>(share);
    rest[i] = share - std::floor(share);
  }
  std::vector<std::size_t> order(workers);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return rest[a] > rest[b]; });
  for (std::size_t i = 0; left > 0; i = (i + 1) % workers, --left) ++shares[order[i]];
  return shares;
}

}  // namespace stepcast
