#pragma once

#include <memory>
#include <unordered_map>

#include "platforms/topology.hpp"

namespace stepcast {

/// Bandwidths of all links of a platform, after background traffic and overrides. Only links that differ from
/// the platform are stored, because a cluster of 100,000 devices has millions of links.
class LinkBandwidths {
 public:
  LinkBandwidths() = default;  ///< no links
  explicit LinkBandwidths(const Platform& platform) : topology_(std::make_shared<const Topology>(platform)) {}

  int size() const { return topology_ ? topology_->link_count() : 0; }
  BytesPerSecond operator[](int link) const {
    const auto changed = changed_.empty() ? changed_.end() : changed_.find(link);
    return factor_ * (changed == changed_.end() ? topology_->link(link).bandwidth : changed->second);
  }
  std::vector<BytesPerSecond> all() const {
    std::vector<BytesPerSecond> bandwidths;
    for (int link = 0; link < size(); ++link) bandwidths.push_back((*this)[link]);
    return bandwidths;
  }

  bool scaled_evenly() const {
    return changed_.empty();
  }  ///< whether all links have the bandwidth of the platform, times one common factor

  void multiply(int link, double factor) {
    const auto known = changed_.try_emplace(link, topology_->link(link).bandwidth).first;
    known->second = factor * known->second;
  }
  void multiply_all(double factor) { factor_ *= factor; }

 private:
  std::shared_ptr<const Topology> topology_;  ///< a few kilobytes, shared by all copies
  std::unordered_map<int, BytesPerSecond> changed_;
  double factor_ = 1;
};

}  // namespace stepcast
