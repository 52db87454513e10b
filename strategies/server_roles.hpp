#pragma once

#include "strategies/server_plan.hpp"
#include "strategies/server_tree.hpp"

namespace stepcast {

/// What all servers and sub-masters of a plan have in common.
Server server_of(const Setting& setting, const ServerOptions& options, const ServerStrategy& strategy,
                 const Workload& whole, const std::string& trace_kind, const Exchanged& exchanged);

/// A role for each shard, then for each sub-master: who its clients are and what it does with their updates.
void add_servers(Plan& plan, const Tree& tree, const ServerOptions& options, const ServerStrategy& strategy,
                 const Server& like, const Exchanged& exchanged);

}  // namespace stepcast
