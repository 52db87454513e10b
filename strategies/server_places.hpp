#pragma once

#include <vector>

#include "strategies/server_options.hpp"
#include "strategies/strategy.hpp"

namespace stepcast {

/// Endpoints of so many servers. own_device: free devices in order; own_host: hosts of free nodes, one each;
/// colocated: hosts of the workers' nodes, spread evenly.
/// @throws InputError if there are too few
std::vector<int> server_places(const Setting& setting, ServerOptions::Place place, int servers,
                               const YamlValue& at);

/// @throws InputError for more shards beside the workers than there are workers
void check_shards(const Setting& setting, const ServerOptions& options);

/// Devices that servers take away from others.
int devices_of_servers(const Platform& platform, ServerOptions::Place place, int servers);

}  // namespace stepcast
