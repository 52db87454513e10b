#include "platforms/platform.hpp"

#include <algorithm>

namespace stepcast {

int Platform::node_of(int endpoint) const {
  if (endpoint < devices()) return endpoint / devices_per_node;
  return endpoint < storage_endpoint() ? endpoint - devices() : -1;
}

const MessageCost& message_cost(const std::vector<MessageCost>& costs, Bytes size) {
  return *std::find_if(costs.begin(), costs.end() - 1,
                       [size](const MessageCost& row) { return size <= row.up_to; });
}

}  // namespace stepcast
