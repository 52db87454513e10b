#pragma once

#include <string>

#include "platforms/topology.hpp"

namespace stepcast {

/// What `stepcast show platform NAME` prints: devices, node, links by kind, bisection bandwidth, message
/// costs, storage, price, source.
std::string platform_table(const Platform& platform);

/// The route between two endpoints, a line a link, with the total latency and the narrowest link.
/// @throws std::invalid_argument for an endpoint that is not there
std::string route_table(const Platform& platform, int from, int to);

/// "device 3", "host of node 2", "storage".
std::string endpoint_name(const Platform& platform, int endpoint);

}  // namespace stepcast
