#include "strategies/nccl/rings.hpp"

#include <algorithm>

namespace stepcast {
namespace {

constexpr int kSearchLimit = 300'000;  ///< steps of the search: some milliseconds

/// Packs undirected Hamiltonian cycles into a multigraph, one cable for each use.
class RingSearch {
 public:
  RingSearch(const std::vector<PeerLink>& peers, const std::vector<int>& devices)
      : count_(devices.size()), cables_(count_ * count_, 0) {
    for (const PeerLink& peer : peers) {
      const auto a = std::find(devices.begin(), devices.end(), peer.a) - devices.begin();
      const auto b = std::find(devices.begin(), devices.end(), peer.b) - devices.begin();
      if (std::max(a, b) == static_cast<std::ptrdiff_t>(count_)) continue;
      cable(static_cast<std::size_t>(a), static_cast<std::size_t>(b)) += peer.count;
      cable(static_cast<std::size_t>(b), static_cast<std::size_t>(a)) += peer.count;
    }
  }

  /// The most rings, each direction counted.
  int most() {
    if (count_ == 2) return cable(0, 1);
    bound_ = fewest_cables() / 2;
    start_ring();
    return 2 * best_;
  }

 private:
  int& cable(std::size_t from, std::size_t to) { return cables_[from * count_ + to]; }

  int fewest_cables() {
    int fewest = INT32_MAX;
    for (std::size_t from = 0; from < count_; ++from) {
      int sum = 0;
      for (std::size_t to = 0; to < count_; ++to) sum += cable(from, to);
      fewest = std::min(fewest, sum);
    }
    return fewest;
  }

  bool over() const { return best_ == bound_ || steps_ > kSearchLimit; }

  void start_ring() {
    best_ = std::max(best_, complete_);
    if (over()) return;
    const std::vector<char> before = std::exchange(used_, std::vector<char>(count_, 0));
    used_[0] = 1;
    extend(0, 1);
    used_ = before;
  }

  /// Extends a path of `length` devices that ends at `last`, and closes it to a ring when it is complete.
  void extend(std::size_t last, std::size_t length) {
    ++steps_;
    if (length == count_) {
      if (cable(last, 0) == 0) return;
      take(last, 0, -1);
      ++complete_;
      start_ring();
      --complete_;
      take(last, 0, 1);
      return;
    }
    for (std::size_t next = 1; next < count_ && !over(); ++next) {
      if (used_[next] != 0 || cable(last, next) == 0) continue;
      used_[next] = 1;
      take(last, next, -1);
      extend(next, length + 1);
      take(last, next, 1);
      used_[next] = 0;
    }
  }

  void take(std::size_t from, std::size_t to, int change) {
    cable(from, to) += change;
    cable(to, from) += change;
  }

  std::size_t count_;
  std::vector<int> cables_;
  std::vector<char> used_;
  int bound_ = 0, best_ = 0, complete_ = 0, steps_ = 0;
};

}  // namespace

int rings_over_links(const std::vector<PeerLink>& peers, const std::vector<int>& devices) {
  return devices.size() < 2 ? 0 : RingSearch(peers, devices).most();
}

}  // namespace stepcast
