#pragma once

#include <vector>

#include "strategies/parameter_server/server_options.hpp"
#include "strategies/plan/setting.hpp"

namespace stepcast {

/// Endpoints of the servers. own_device: free devices in order; own_host: the hosts of free nodes, one server
/// each; colocated: the hosts of the workers' nodes, evenly.
/// @throws InputError at `at` if there are too few
std::vector<int> server_places(const Setting& setting, ServerOptions::Place place, int servers,
                               const YamlValue& at);

/// @throws InputError for `server: colocated` with more shards than workers
void check_shards(const Setting& setting, const ServerOptions& options);

/// Devices that servers occupy.
int devices_of_servers(const Platform& platform, ServerOptions::Place place, int servers);

/// Options that all servers and sub-masters of a plan have in common.
Server server_of(const Setting& setting, const ServerOptions& options, const ServerStrategy& strategy,
                 const Workload& whole, const std::string& trace_kind, const Exchanged& exchanged);

/// Adds a role for each shard, then for each sub-master, with its clients and its arithmetic.
/// @param like  from server_of
void add_servers(Plan& plan, const Tree& tree, const ServerOptions& options, const ServerStrategy& strategy,
                 const Server& like, const Exchanged& exchanged);

}  // namespace stepcast
