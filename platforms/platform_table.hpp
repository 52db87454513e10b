#pragma once

#include <string>

#include "platforms/platform.hpp"
#include "platforms/topology.hpp"

namespace stepcast {

/// Bisection bandwidth: from one half of the nodes to the other half, one way.
struct Bisection {
  BytesPerSecond bandwidth;
  std::string method;  ///< the cables that limit it
};

/// Counts the cables between the two halves by the formula of the fabric (docs/reference/platforms.md). Half
/// of all NICs is another bound. This is an upper bound: the routes may reach less.
Bisection bisection(const Platform& platform);

/// The output of `stepcast show platform NAME`: devices, node, links by kind, bisection bandwidth, message
/// costs, storage, price, source.
std::string platform_table(const Platform& platform);

/// The route between two endpoints, one line for each link, with the total latency and the narrowest link.
/// @throws std::invalid_argument for an endpoint that the platform does not have
std::string route_table(const Platform& platform, int from, int to);

/// A doubt about a bandwidth of NICs above that of the fastest ones; empty if there is none.
std::string bandwidth_doubt(const Platform& platform);

}  // namespace stepcast
